-- One job. Index: primary key of every partition, by id alone (a cached generic plan: planning for every partition would
-- cost more than the look-up).
select j.id, j.next_run_at, j.slot, j.state, j.handler, j.scheduled_for, j.cause, j.attempt, j.lost, j.occurrences,
       j.decided_until, j.kept, j.lease_generation, j.lease_owner, j.lease_until, j.claimed_at, j.cancel_requested,
       j.after_current::text, j.revision, j.schedule::text, j.run_at, j.payload::text as payload, j.key, j.name, j.tags,
       j.max_attempts, j.min_backoff_seconds, j.max_backoff_seconds, j.backoff_multiplier, j.max_lost,
       j.timeout_seconds, j.overlap, j.catchup, j.catchup_window_seconds, j.jitter_seconds, j.on_exhausted, j.tzdata,
       j.alert_after_late_seconds, j.alert_if_no_success_seconds,
       j.pause_reason, j.paused_by, j.dead_reason, j.created_at, j.updated_at
from jobs j
where j.id = %(id)s
