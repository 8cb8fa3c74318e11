-- New jobs whose ids nobody has. Index: primary keys.
copy jobs (
    id, next_run_at, slot, scheduled_for, decided_until, created_at, updated_at, run_at, payload, key,
    state, handler, schedule, name, tags,
    max_attempts, min_backoff_seconds, max_backoff_seconds, backoff_multiplier, max_lost,
    timeout_seconds, overlap, catchup, catchup_window_seconds, jitter_seconds, on_exhausted,
    tzdata, traceparent, tracestate, alert_after_late_seconds, alert_if_no_success_seconds)
from stdin (format binary)
