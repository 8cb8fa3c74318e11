-- Lock those of these jobs that are dead and that nobody else has locked, in id order. What it answers with is what a
-- redrive is decided on. Index: primary key of the far partition, where dead rows are parked, once per id (`is not
-- distinct from` and the lateral keep PostgreSQL 15 from reading every dead job instead).
select j.id, j.slot, j.schedule, j.scheduled_for, j.cause, j.attempt, j.decided_until, j.updated_at,
       clock_timestamp() as now
from (select w.id from unnest(%(ids)s::uuid[]) as w (id) order by w.id) as wanted
cross join lateral (
    select k.id, k.slot, k.schedule::text as schedule, k.scheduled_for, k.cause, k.attempt, k.decided_until,
           k.updated_at
    from jobs k
    where k.id = wanted.id
      and k.state is not distinct from 'dead'
      and k.next_run_at = timestamptz '9500-01-01 00:00:00+00'
    for update skip locked
    offset 0) as j
