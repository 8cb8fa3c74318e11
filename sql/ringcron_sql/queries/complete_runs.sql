-- Complete runs: move the jobs and write their run and skip rows, all of it only from rows that the fence let pass.
-- A row whose definition changed meanwhile (revision) is left alone and reported, for its owner to read and decide again.
-- The rows come sorted by id and are locked in that order: renew and complete cannot deadlock.
-- next_run_at never goes below now; retry delays are added here, on the database's clock; ages are seconds ago.
-- A field of the occurrence that is left out stays as it is; any other that is left out is null, false or 0.
-- Index: primary key; first_at and last_at prune. (See renew_leases for `is not distinct from` and the UPDATE's conditions.)
with ended as materialized (
    select *
    from json_to_recordset(%(rows)s::json) as e (
        id uuid, next_run_at timestamptz, lease_generation bigint, revision integer,
        outcome text, error text, result jsonb, started_ago float8, finished_ago float8,
        state text, following timestamptz, delay float8, scheduled_for timestamptz, cause text, attempt integer,
        decided_until timestamptz, kept timestamptz[], dead_reason text, give_back boolean, patched boolean,
        after_current jsonb,
        skip_first timestamptz, skip_last timestamptz, skip_count bigint, skip_reason text, given_up json)),
held as materialized (
    select e.*, j.claimed_at, j.ran_attempt, j.ran_for, j.ran_cause, j.current_revision
    from ended e
    cross join lateral (
        select k.claimed_at, k.attempt as ran_attempt, k.scheduled_for as ran_for, k.cause as ran_cause,
               k.revision as current_revision
        from jobs k
        where k.id = e.id and k.next_run_at = e.next_run_at
          and k.next_run_at >= %(first_at)s and k.next_run_at <= %(last_at)s
          and k.state is not distinct from 'claimed'
          and k.lease_generation is not distinct from e.lease_generation
          and k.lease_owner is not distinct from %(owner)s
        for update
        offset 0) as j),
moved as (
    update jobs j
    set state = held.state,
        next_run_at = case
            when held.state = 'due' then greatest(held.following, clock_timestamp() + make_interval(secs => coalesce(held.delay, 0)))
            when held.state in ('paused', 'dead') then timestamptz '9500-01-01 00:00:00+00'
            else clock_timestamp() end,
        scheduled_for = coalesce(held.scheduled_for, j.scheduled_for),
        cause = coalesce(held.cause, j.cause),
        attempt = coalesce(held.attempt, j.attempt),
        lost = 0,
        occurrences = j.occurrences - coalesce(held.give_back, false)::int,
        decided_until = coalesce(held.decided_until, j.decided_until),
        kept = held.kept,
        dead_reason = held.dead_reason,
        pause_reason = case when held.state = 'paused' then j.after_current #>> '{pause,reason}' end,
        paused_by = case when held.state = 'paused' then j.after_current #>> '{pause,by}' end,
        schedule = case
            when held.patched then nullif(j.after_current #> '{patch,schedule}', 'null') else j.schedule end,
        run_at = case
            when held.patched then (j.after_current #>> '{patch,runAt}')::timestamptz else j.run_at end,
        tzdata = case when held.patched then j.after_current #>> '{patch,tzdata}' else j.tzdata end,
        cancel_requested = false,
        after_current = held.after_current,
        lease_owner = null,
        lease_until = null,
        claimed_at = null
    from held
    where j.id between held.id and held.id and j.next_run_at = held.next_run_at
      and (j.next_run_at > %(first_at)s and j.next_run_at < %(last_at)s or j.next_run_at in (%(first_at)s, %(last_at)s))
      and held.revision = held.current_revision),
ran as (
    insert into runs (job_id, lease_generation, claimed_at, attempt, scheduled_for, cause, worker_id,
                      started_at, finished_at, outcome, error, result)
    select held.id, held.lease_generation, held.claimed_at, held.ran_attempt, held.ran_for, held.ran_cause, %(owner)s,
           greatest(held.claimed_at, clock_timestamp() - make_interval(secs => held.started_ago)),
           greatest(held.claimed_at, clock_timestamp() - make_interval(secs => held.finished_ago)),
           held.outcome, held.error, held.result
    from held
    where held.revision = held.current_revision),
skipped as (
    insert into skips (job_id, decided_at, first, last, count, reason)
    select held.id, clock_timestamp(), held.skip_first, held.skip_last, held.skip_count, held.skip_reason
    from held
    where held.skip_count > 0 and held.revision = held.current_revision
    union all
    select held.id, clock_timestamp(), s.first, s.last, s.count, s.reason
    from held
    cross join json_to_recordset(held.given_up) as s (first timestamptz, last timestamptz, count bigint, reason text)
    where held.given_up is not null and held.revision = held.current_revision)
select held.id, held.lease_generation, held.revision = held.current_revision from held
