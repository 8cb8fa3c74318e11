-- The jobs that hold keys, as far as a create with such a key asks, and the clock, after the caller locked what it may
-- replace. Narrow on purpose: a payload may have 256 KiB.
-- Index: primary key of every partition, by id alone, once per id.
select j.*
from unnest(%(ids)s::uuid[]) as wanted (id)
cross join lateral (
    select k.id, k.next_run_at, k.state, k.schedule::text as schedule, k.scheduled_for, k.cause, k.attempt, k.kept,
           k.decided_until, k.updated_at, k.lease_owner, k.lease_until, k.lease_generation, clock_timestamp() as read_at
    from jobs k
    where k.id = wanted.id
    offset 0) as j
