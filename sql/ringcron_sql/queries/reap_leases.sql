-- Take back lapsed leases: a run row `lost`, and the job due again; dead where it was lost too often, the last time alone
-- (a row with lost > 0 is only ever claimed alone, so its worker fell with nothing else).
-- now() in the predicate, not clock_timestamp(): that one cannot be an index condition. The statement does nothing where
-- the database's clock is more than a second off what this reaper expected: after a step the owners get one lease.
-- A cancel that was requested stays on the row; the next claim honours it instead of running.
-- Index: jobs_claimed (lease_until); from_at and until_at prune.
with lapsed as materialized (
    select j.id, j.next_run_at, j.lease_generation, j.attempt, j.scheduled_for, j.cause, j.lease_owner, j.claimed_at,
           j.lost > 0 and j.lost + 1 >= j.max_lost as convicted
    from jobs j
    where j.state = 'claimed'
      and j.lease_until < now()
      and j.next_run_at >= %(from_at)s and j.next_run_at < %(until_at)s
      and clock_timestamp() between %(expected_now)s::timestamptz - interval '1 second'
                                and %(expected_now)s::timestamptz + interval '1 second'
    order by j.lease_until
    limit 100
    for update skip locked),
taken as (
    update jobs j
    set state = case when lapsed.convicted then 'dead' else 'due' end,
        next_run_at = case when lapsed.convicted then timestamptz '9500-01-01 00:00:00+00' else clock_timestamp() end,
        lost = j.lost + 1,
        dead_reason = case when lapsed.convicted
            then 'its worker was lost ' || j.lost + 1 || ' times in a row, the last time while it ran nothing else' end,
        lease_owner = null,
        lease_until = null,
        claimed_at = null
    from lapsed
    where j.id = lapsed.id and j.next_run_at = lapsed.next_run_at
      and j.next_run_at >= %(from_at)s and j.next_run_at < %(until_at)s
    returning j.id),
ran as (
    insert into runs (job_id, lease_generation, claimed_at, attempt, scheduled_for, cause, worker_id,
                      started_at, finished_at, outcome, error)
    select l.id, l.lease_generation, l.claimed_at, l.attempt, l.scheduled_for, l.cause, l.lease_owner,
           l.claimed_at, clock_timestamp(), 'lost', 'the lease lapsed and its worker did not come back'
    from lapsed l
    join taken on taken.id = l.id)
select l.id, l.lease_generation, l.lease_owner, l.convicted from lapsed l
