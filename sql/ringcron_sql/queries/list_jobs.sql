-- Jobs, newest first. before is exclusive; null filters do not filter; from_at and until_at bound next_run_at and prune.
-- Index: primary key of each partition backwards, merged; jobs_set_aside for paused, dead and cancelled jobs; jobs_named
-- for a name. A custom plan each time: the filters that are null fall away.
select j.id, j.next_run_at, j.slot, j.state, j.handler, j.scheduled_for, j.cause, j.attempt, j.lost, j.occurrences,
       j.decided_until, j.kept, j.lease_generation, j.lease_owner, j.lease_until, j.claimed_at, j.cancel_requested,
       j.after_current::text, j.revision, j.schedule::text, j.run_at,
       case when %(with_payload)s then j.payload::text end as payload, j.key, j.name, j.tags,
       j.max_attempts, j.min_backoff_seconds, j.max_backoff_seconds, j.backoff_multiplier, j.max_lost,
       j.timeout_seconds, j.overlap, j.catchup, j.catchup_window_seconds, j.jitter_seconds, j.on_exhausted, j.tzdata,
       j.alert_after_late_seconds, j.alert_if_no_success_seconds,
       j.pause_reason, j.paused_by, j.dead_reason, j.created_at, j.updated_at
from jobs j
where j.id < %(before)s
  and j.next_run_at >= %(from_at)s and j.next_run_at < %(until_at)s
  and (%(states)s::text[] is null or j.state = any(%(states)s::text[]))
  and (%(handler)s::text is null or j.handler = %(handler)s)
  and (%(name)s::text is null or j.name = %(name)s)
order by j.id desc
limit %(limit)s
