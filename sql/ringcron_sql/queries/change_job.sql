-- Write down what a person did to a job, over the row version that the caller has locked and read. A lapsed lease is
-- reaped (run row `lost`), passed ticks leave skips, and tags follow the definition. A due row never goes below now.
-- Index: primary key (held_next_run_at prunes); job_tags_by_job; primary key of job_keys.
with held as materialized (
    select j.id, j.next_run_at, j.key, j.lease_generation, j.lease_owner, j.claimed_at, j.attempt, j.scheduled_for, j.cause
    from jobs j
    where j.id = %(id)s and j.next_run_at = %(held_next_run_at)s),
changed as (
    update jobs j
    set state = %(state)s,
        next_run_at = case
            when %(state)s in ('paused', 'dead') then timestamptz '9500-01-01 00:00:00+00'
            when %(state)s = 'due' then greatest(%(next_run_at)s, clock_timestamp())
            when %(state)s = 'claimed' or j.state = %(state)s then j.next_run_at
            else clock_timestamp() end,
        handler = %(handler)s, scheduled_for = %(scheduled_for)s, cause = %(cause)s, attempt = %(attempt)s,
        lost = %(lost)s, decided_until = %(decided_until)s, kept = %(kept)s::timestamptz[],
        lease_owner = case when %(state)s = 'claimed' then j.lease_owner end,
        lease_until = case when %(state)s = 'claimed' then j.lease_until end,
        claimed_at = case when %(state)s = 'claimed' then j.claimed_at end,
        cancel_requested = %(cancel_requested)s,
        after_current = %(after_current)s::text::jsonb,
        revision = %(revision)s,
        schedule = %(schedule)s::text::jsonb, run_at = %(run_at)s, payload = coalesce(%(payload)s::text::jsonb, j.payload),
        name = %(name)s, tags = %(tags)s::text[],
        max_attempts = %(max_attempts)s, min_backoff_seconds = %(min_backoff)s, max_backoff_seconds = %(max_backoff)s,
        backoff_multiplier = %(multiplier)s, max_lost = %(max_lost)s, timeout_seconds = %(timeout)s,
        overlap = %(overlap)s, catchup = %(catchup)s, catchup_window_seconds = %(catchup_window)s,
        jitter_seconds = %(jitter)s, on_exhausted = %(on_exhausted)s, tzdata = %(tzdata)s,
        traceparent = coalesce(%(traceparent)s, j.traceparent),
        tracestate = case when %(traceparent)s::text is null then j.tracestate else %(tracestate)s end,
        alert_after_late_seconds = %(alert_after_late)s, alert_if_no_success_seconds = %(alert_if_no_success)s,
        pause_reason = %(pause_reason)s, paused_by = %(paused_by)s, dead_reason = %(dead_reason)s,
        updated_at = clock_timestamp()
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
    where %(reaped)s),
skipped as (
    insert into skips (job_id, decided_at, first, last, count, reason)
    select held.id, clock_timestamp(), s.first, s.last, s.count, s.reason
    from held
    cross join json_to_recordset(%(skips)s::json) as s (first timestamptz, last timestamptz, count bigint, reason text)),
untagged as (
    delete from job_tags t
    using held
    where t.job_id = held.id and (%(released)s or t.tag <> all(%(tags)s::text[]))),
tagged as (
    insert into job_tags (tag, job_id)
    select t.tag, held.id from held cross join unnest(%(tags)s::text[]) as t (tag)
    where not %(released)s
    on conflict do nothing),
watched as (
    insert into job_alerts (job_id, since, look_at)
    select held.id, clock_timestamp(), clock_timestamp()
    from held
    where %(alert_after_late)s::float8 is not null or %(alert_if_no_success)s::float8 is not null
    on conflict (job_id) do update set look_at = excluded.look_at),
freed as (
    delete from job_keys k
    using held
    where %(released)s and k.key = held.key and k.job_id = held.id)
select changed.id from changed
