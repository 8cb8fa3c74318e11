-- Jobs that carry a tag, newest first; the rest as in list_jobs. A cancelled job carries no tag any more.
-- Index: primary key of job_tags backwards, then the primary key of each partition in the bounds, lazily.
select j.id, j.next_run_at, j.slot, j.state, j.handler, j.scheduled_for, j.cause, j.attempt, j.lost, j.occurrences,
       j.decided_until, j.kept, j.lease_generation, j.lease_owner, j.lease_until, j.claimed_at, j.cancel_requested,
       j.after_current::text, j.revision, j.schedule::text, j.run_at,
       case when %(with_payload)s then j.payload::text end as payload, j.key, j.name, j.tags,
       j.max_attempts, j.min_backoff_seconds, j.max_backoff_seconds, j.backoff_multiplier, j.max_lost,
       j.timeout_seconds, j.overlap, j.catchup, j.catchup_window_seconds, j.jitter_seconds, j.on_exhausted, j.tzdata,
       j.alert_after_late_seconds, j.alert_if_no_success_seconds,
       j.pause_reason, j.paused_by, j.dead_reason, j.created_at, j.updated_at
from job_tags t
cross join lateral (
    select *
    from jobs k
    where k.id = t.job_id
      and k.next_run_at >= %(from_at)s and k.next_run_at < %(until_at)s
      and (%(states)s::text[] is null or k.state = any(%(states)s::text[]))
      and (%(handler)s::text is null or k.handler = %(handler)s)
      and (%(name)s::text is null or k.name = %(name)s)
    offset 0) as j
where t.tag = %(tag)s
  and t.job_id < %(before)s
order by t.job_id desc
limit %(limit)s
