-- Lock a job's row before it is replaced; says whether it is claimed and whether that lease has lapsed.
-- Index: primary key of every partition, by id alone.
select j.next_run_at, j.state = 'claimed' as claimed, j.state = 'claimed' and j.lease_until < now() as lapsed
from jobs j
where j.id = %(id)s
for update
