-- Give a job, whose row the caller has locked and read, a new definition: all of it, as a PUT. Whatever state it was in it
-- is due again. A lapsed lease is reaped first (run row `lost`); ticks that passed undecided leave a skip.
-- Index: primary key (next_run_at prunes); job_tags_by_job.
with held as materialized (
    select j.id, j.next_run_at, j.state, j.lease_generation, j.lease_owner, j.claimed_at, j.attempt, j.scheduled_for,
           j.cause
    from jobs j
    where j.id = %(id)s and j.next_run_at = %(held_next_run_at)s),
replaced as (
    update jobs j
    set state = 'due', next_run_at = %(next_run_at)s, handler = %(handler)s,
        scheduled_for = %(scheduled_for)s, cause = 'schedule', attempt = 0, lost = 0, occurrences = 0,
        decided_until = %(created_at)s, kept = null,
        lease_owner = null, lease_until = null, claimed_at = null, cancel_requested = false, after_current = null,
        revision = j.revision + 1,
        schedule = %(schedule)s::text::jsonb, run_at = %(run_at)s, payload = %(payload)s::text::jsonb,
        name = %(name)s, tags = %(tags)s::text[],
        max_attempts = %(max_attempts)s, min_backoff_seconds = %(min_backoff)s, max_backoff_seconds = %(max_backoff)s,
        backoff_multiplier = %(multiplier)s, max_lost = %(max_lost)s, timeout_seconds = %(timeout)s,
        overlap = %(overlap)s, catchup = %(catchup)s, catchup_window_seconds = %(catchup_window)s,
        jitter_seconds = %(jitter)s, on_exhausted = %(on_exhausted)s,
        tzdata = %(tzdata)s, pause_reason = null, paused_by = null, dead_reason = null, updated_at = %(created_at)s
    from held
    where j.id = held.id and j.next_run_at = %(held_next_run_at)s
    returning j.id),
ran as (
    insert into runs (job_id, lease_generation, claimed_at, attempt, scheduled_for, cause, worker_id,
                      started_at, finished_at, outcome, error)
    select held.id, held.lease_generation, held.claimed_at, held.attempt, held.scheduled_for, held.cause,
           held.lease_owner, held.claimed_at, clock_timestamp(), 'lost',
           'the lease lapsed and its worker did not come back'
    from held
    where held.state = 'claimed'),
skipped as (
    insert into skips (job_id, decided_at, first, last, count, reason)
    select held.id, clock_timestamp(), %(skip_first)s::timestamptz, %(skip_last)s::timestamptz, %(skip_count)s::bigint,
           %(skip_reason)s::text
    from held
    where %(skip_count)s::bigint > 0),
untagged as (
    delete from job_tags t
    using held
    where t.job_id = held.id and t.tag <> all(%(tags)s::text[])),
tagged as (
    insert into job_tags (tag, job_id)
    select t.tag, held.id from held cross join unnest(%(tags)s::text[]) as t (tag)
    on conflict do nothing)
select replaced.id from replaced
