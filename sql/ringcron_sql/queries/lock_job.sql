-- Lock a job's row before it is changed; says whether it is claimed, whether that lease has lapsed, and the time.
-- Index: primary key of every partition, by id alone.
select j.next_run_at, j.state = 'claimed' as claimed, j.state = 'claimed' and j.lease_until < now() as lapsed,
       clock_timestamp()
from jobs j
where j.id = %(id)s
for update
