-- New jobs and their tags: one, or some that were asked for at the same time. Leaves out those that an earlier, unanswered
-- try has stored: their ids and their next_run_at are the same. A payload of JSON null comes out of the record set as SQL
-- null. Index: primary keys.
with new as materialized (
    select *
    from json_to_recordset(%(jobs)s::json) as n (
        id uuid, next_run_at timestamptz, slot smallint, handler text, scheduled_for timestamptz, created_at timestamptz,
        schedule jsonb, run_at timestamptz, payload jsonb, key text, name text, tags text[],
        max_attempts integer, min_backoff double precision, max_backoff double precision, multiplier double precision,
        max_lost integer, timeout double precision, overlap text, catchup text, catchup_window double precision,
        jitter double precision, on_exhausted text, tzdata text, traceparent text, tracestate text,
        alert_after_late double precision, alert_if_no_success double precision)),
job as (
    insert into jobs (
        id, next_run_at, slot, state, handler, scheduled_for, decided_until,
        schedule, run_at, payload, key, name, tags,
        max_attempts, min_backoff_seconds, max_backoff_seconds, backoff_multiplier, max_lost,
        timeout_seconds, overlap, catchup, catchup_window_seconds, jitter_seconds, on_exhausted,
        tzdata, traceparent, tracestate, alert_after_late_seconds, alert_if_no_success_seconds, created_at, updated_at)
    select
        id, next_run_at, slot, 'due', handler, scheduled_for, created_at,
        schedule, run_at, coalesce(payload, 'null'), key, name, tags,
        max_attempts, min_backoff, max_backoff, multiplier, max_lost,
        timeout, overlap, catchup, catchup_window, jitter, on_exhausted,
        tzdata, traceparent, tracestate, alert_after_late, alert_if_no_success, created_at, created_at
    from new
    on conflict do nothing
    returning id, payload),
tagged as (
    insert into job_tags (tag, job_id)
    select t.tag, job.id
    from job join new using (id) cross join unnest(new.tags) as t (tag)
    on conflict do nothing),
watched as (
    insert into job_alerts (job_id, since, look_at)
    select job.id, new.created_at, new.created_at
    from job join new using (id)
    where new.alert_after_late is not null or new.alert_if_no_success is not null
    on conflict do nothing)
select id, payload::text from job
