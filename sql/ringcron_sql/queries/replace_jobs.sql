-- Give jobs, whose rows the caller has locked and read, new definitions: all of each, as a PUT. Whatever state they were in
-- they are due again. A lapsed lease is reaped first (run row `lost`); ticks that passed undecided or waited their turn leave skips.
-- json, not jsonb: all payloads together may have more than jsonb can hold.
-- Index: primary key (first_at and last_at prune); job_tags_by_job.
with given as materialized (
    select *
    from json_to_recordset(%(rows)s::json) as g (
        id uuid, held_next_run_at timestamptz, next_run_at timestamptz, handler text, scheduled_for timestamptz,
        created_at timestamptz, schedule jsonb, run_at timestamptz, payload jsonb, name text, tags text[],
        max_attempts integer, min_backoff double precision, max_backoff double precision, multiplier double precision,
        max_lost integer, timeout double precision, overlap text, catchup text, catchup_window double precision,
        jitter double precision, on_exhausted text, tzdata text, traceparent text, tracestate text,
        alert_after_late double precision, alert_if_no_success double precision,
        decided_until timestamptz, skips json)),
held as materialized (
    select g.*, j.state, j.lease_generation, j.lease_owner, j.claimed_at, j.attempt, j.ran_for, j.cause
    from given g
    cross join lateral (
        select k.state, k.lease_generation, k.lease_owner, k.claimed_at, k.attempt, k.scheduled_for as ran_for, k.cause
        from jobs k
        where k.id = g.id and k.next_run_at = g.held_next_run_at
          and k.next_run_at >= %(first_at)s and k.next_run_at <= %(last_at)s
        offset 0) as j),
replaced as (
    update jobs j
    set state = 'due', next_run_at = held.next_run_at, handler = held.handler,
        scheduled_for = held.scheduled_for, cause = 'schedule', attempt = 0, lost = 0, occurrences = 0,
        decided_until = held.decided_until, kept = null,
        lease_owner = null, lease_until = null, claimed_at = null, cancel_requested = false, after_current = null,
        revision = j.revision + 1,
        schedule = held.schedule, run_at = held.run_at, payload = coalesce(held.payload, 'null'),
        name = held.name, tags = held.tags,
        max_attempts = held.max_attempts, min_backoff_seconds = held.min_backoff,
        max_backoff_seconds = held.max_backoff, backoff_multiplier = held.multiplier, max_lost = held.max_lost,
        timeout_seconds = held.timeout, overlap = held.overlap, catchup = held.catchup,
        catchup_window_seconds = held.catchup_window, jitter_seconds = held.jitter, on_exhausted = held.on_exhausted,
        tzdata = held.tzdata, traceparent = held.traceparent, tracestate = held.tracestate,
        alert_after_late_seconds = held.alert_after_late, alert_if_no_success_seconds = held.alert_if_no_success,
        pause_reason = null, paused_by = null, dead_reason = null,
        updated_at = held.created_at
    from held
    where j.id = held.id and j.next_run_at = held.held_next_run_at
      and j.next_run_at >= %(first_at)s and j.next_run_at <= %(last_at)s),
ran as (
    insert into runs (job_id, lease_generation, claimed_at, attempt, scheduled_for, cause, worker_id,
                      started_at, finished_at, outcome, error)
    select held.id, held.lease_generation, held.claimed_at, held.attempt, held.ran_for, held.cause,
           held.lease_owner, held.claimed_at, clock_timestamp(), 'lost',
           'the lease lapsed and its worker did not come back'
    from held
    where held.state = 'claimed'),
skipped as (
    insert into skips (job_id, decided_at, first, last, count, reason)
    select held.id, clock_timestamp(), s.first, s.last, s.count, s.reason
    from held
    cross join json_to_recordset(held.skips) as s (first timestamptz, last timestamptz, count bigint, reason text)),
untagged as (
    delete from job_tags t
    using held
    where t.job_id = held.id and t.tag <> all(held.tags)),
tagged as (
    insert into job_tags (tag, job_id)
    select t.tag, held.id from held cross join unnest(held.tags) as t (tag)
    on conflict do nothing),
watched as (
    insert into job_alerts (job_id, since, look_at)
    select held.id, held.decided_until, held.decided_until
    from held
    where held.alert_after_late is not null or held.alert_if_no_success is not null
    on conflict (job_id) do update set since = excluded.since, look_at = excluded.look_at)
select count(*) from held
