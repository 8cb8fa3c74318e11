-- A new job and its tags. Does nothing where an earlier, unanswered try of the same create has landed: its id and its
-- next_run_at are the same. Index: primary keys.
with job as (
    insert into jobs (
        id, next_run_at, slot, state, handler, scheduled_for, decided_until,
        schedule, run_at, payload, key, name, tags,
        max_attempts, min_backoff_seconds, max_backoff_seconds, backoff_multiplier, max_lost,
        timeout_seconds, overlap, catchup, catchup_window_seconds, jitter_seconds, on_exhausted,
        tzdata, created_at, updated_at)
    values (
        %(id)s, %(next_run_at)s, %(slot)s, 'due', %(handler)s, %(scheduled_for)s, %(created_at)s,
        %(schedule)s::text::jsonb, %(run_at)s, %(payload)s::text::jsonb, %(key)s, %(name)s, %(tags)s::text[],
        %(max_attempts)s, %(min_backoff)s, %(max_backoff)s, %(multiplier)s, %(max_lost)s,
        %(timeout)s, %(overlap)s, %(catchup)s, %(catchup_window)s, %(jitter)s, %(on_exhausted)s,
        %(tzdata)s, %(created_at)s, %(created_at)s)
    on conflict do nothing
    returning id, payload),
tagged as (
    insert into job_tags (tag, job_id)
    select t.tag, job.id from job cross join unnest(%(tags)s::text[]) as t (tag)
    on conflict do nothing)
select job.payload::text, clock_timestamp() from job
