-- Lock those of these jobs that are dead and that nobody else has locked, in id order. What it answers with is what a
-- redrive is decided on. Index: primary key of the far partition, where dead rows are parked.
select j.id, j.slot, j.schedule::text, j.decided_until, clock_timestamp() as now
from jobs j
where j.id = any(%(ids)s::uuid[])
  and j.state = 'dead'
  and j.next_run_at = timestamptz '9500-01-01 00:00:00+00'
order by j.id
for update skip locked
