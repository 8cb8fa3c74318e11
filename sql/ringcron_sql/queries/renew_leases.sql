-- Renew every lease of this worker that the fence lets pass; what does not come back is lost.
-- Index: primary key; nothing else is possible in the UPDATE (ringcron.store.link.PLANS).
-- The ids come sorted, so that rows are locked in id order: renew and complete cannot deadlock.
-- `is not distinct from` in the fence keeps the planner off jobs_claimed: under statistics that say nothing is claimed
-- it would read that whole index once per row.
with held as materialized (
    select j.id, j.next_run_at, j.cancel_requested
    from unnest(%(ids)s::uuid[], %(next_run_ats)s::timestamptz[], %(generations)s::bigint[])
        as mine (id, next_run_at, lease_generation)
    cross join lateral (
        select k.id, k.next_run_at, k.cancel_requested
        from jobs k
        where k.id = mine.id and k.next_run_at = mine.next_run_at
          and k.next_run_at >= %(first_at)s and k.next_run_at <= %(last_at)s
          and k.state is not distinct from 'claimed'
          and k.lease_generation is not distinct from mine.lease_generation
          and k.lease_owner is not distinct from %(owner)s
        for update
        offset 0) as j)
update jobs j
set lease_until = clock_timestamp() + make_interval(secs => %(lease)s)
from held
where j.id between held.id and held.id and j.next_run_at = held.next_run_at
  and (j.next_run_at > %(first_at)s and j.next_run_at < %(last_at)s or j.next_run_at in (%(first_at)s, %(last_at)s))
returning j.id, j.lease_generation, held.cancel_requested, clock_timestamp()
