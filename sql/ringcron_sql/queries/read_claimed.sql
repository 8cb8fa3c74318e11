-- The definitions of rows just claimed, for their owner. Read apart from the claim, so that a row that cannot be decoded
-- spoils no other, and a client that stops reading holds no locks. Index: primary key. first_at, last_at prune.
select j.id, j.lease_generation, j.payload::text, j.schedule::text, j.run_at,
       row(j.max_attempts, j.min_backoff_seconds, j.max_backoff_seconds, j.backoff_multiplier, j.max_lost,
           j.timeout_seconds, j.overlap, j.catchup, j.catchup_window_seconds, j.jitter_seconds, j.on_exhausted)::text,
       j.occurrences, j.kept, j.cancel_requested, j.after_current::text, j.revision, j.traceparent,
       j.tracestate
from unnest(%(ids)s::uuid[], %(next_run_ats)s::timestamptz[]) as mine (id, next_run_at)
cross join lateral (
    select *
    from jobs k
    where k.id = mine.id and k.next_run_at = mine.next_run_at
      and k.next_run_at >= %(first_at)s and k.next_run_at <= %(last_at)s
    offset 0) as j
where j.lease_owner = %(owner)s
