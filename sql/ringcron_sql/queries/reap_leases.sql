-- Take back lapsed leases: a run row `lost`, and the job due again; dead where it was lost too often, the last time alone
-- (a row with lost > 1 is only ever claimed alone, so its worker fell with nothing else).
-- now() in the predicate, not clock_timestamp(): that one cannot be an index condition. The statement does nothing where
-- the database's clock is more than a second off what this reaper expected: after a step the owners get one lease.
-- What waited for the run (after_current) takes effect as far as it needs no tick: cancel, pause. The rest, and a cancel
-- of the run of a recurring job, stays on the row, and the next claim honours it.
-- Index: jobs_claimed (lease_until); from_at and until_at prune. (See renew_leases for the UPDATE's conditions.)
with lapsed as materialized (
    select j.id, j.next_run_at, j.lease_generation, j.attempt, j.scheduled_for, j.cause, j.lease_owner, j.claimed_at,
           case
               when j.after_current ? 'cancel' or (j.cancel_requested and j.schedule is null) then 'cancelled'
               when j.lost > 1 and j.lost + 1 >= j.max_lost then 'dead'
               when j.after_current ? 'pause' then 'paused'
               else 'due' end as becomes
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
    set state = lapsed.becomes,
        next_run_at = case
            when lapsed.becomes in ('dead', 'paused') then timestamptz '9500-01-01 00:00:00+00'
            else clock_timestamp() end,
        lost = j.lost + 1,
        dead_reason = case when lapsed.becomes = 'dead'
            then 'its worker was lost ' || j.lost + 1 || ' times in a row, the last time while it ran nothing else' end,
        pause_reason = case when lapsed.becomes = 'paused' then j.after_current #>> '{pause,reason}' end,
        paused_by = case when lapsed.becomes = 'paused' then j.after_current #>> '{pause,by}' end,
        after_current = case when lapsed.becomes in ('due', 'paused') then nullif(j.after_current - 'pause', '{}') end,
        lease_owner = null,
        lease_until = null,
        claimed_at = null
    from lapsed
    where j.id between lapsed.id and lapsed.id and j.next_run_at = lapsed.next_run_at
      and (j.next_run_at > %(from_at)s and j.next_run_at < %(until_at)s or j.next_run_at = %(from_at)s)
    returning lapsed.*),
ran as (
    insert into runs (job_id, lease_generation, claimed_at, attempt, scheduled_for, cause, worker_id,
                      started_at, finished_at, outcome, error)
    select t.id, t.lease_generation, t.claimed_at, t.attempt, t.scheduled_for, t.cause, t.lease_owner,
           t.claimed_at, clock_timestamp(), 'lost', 'the lease lapsed and its worker did not come back'
    from taken t)
select l.id, l.lease_generation, l.lease_owner, l.becomes = 'dead' from lapsed l
