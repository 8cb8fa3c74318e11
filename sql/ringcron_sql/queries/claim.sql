-- The one claim statement: the oldest due rows of one arc become claimed, with a lease and a higher generation.
-- Index: jobs_due (handler, next_run_at, slot); quarantined rows (solo) by jobs_quarantined. The UPDATE by primary key, and
-- written so that nothing else is possible (ringcron.store.link.PLANS).
-- from_at and until_at only prune partitions; `next_run_at <= now() - overdue` is the test, on the database's clock.
-- One ordered scan per handler, so that a backlog of a handler that nobody has costs nothing.
-- The generation carries the WAL timeline: a promoted replica that lost a claim can never hand its number out again.
-- What comes with a row is small: a large payload is read afterwards (read_claimed), so that a client that stops reading
-- cannot keep the locks of a claim whose answer fills its socket. payload null: not sent. The policies come as one text:
-- most jobs have the same ones, and the worker works out each text once.
with pick as materialized (
    select due.id, due.next_run_at
    from unnest(%(handlers)s::text[]) as wanted (handler)
    cross join lateral (
        select j.id, j.next_run_at
        from jobs j
        where j.state = 'due'
          and j.handler = wanted.handler
          and (j.lost > 1) = %(solo)s
          and j.next_run_at >= %(from_at)s and j.next_run_at < %(until_at)s
          and j.next_run_at <= now() - make_interval(secs => %(overdue)s)
          and j.slot between %(lo)s and %(hi)s
        order by j.next_run_at
        limit %(batch)s
        for update skip locked) as due
    order by due.next_run_at
    limit %(batch)s)
update jobs j
set state = 'claimed',
    lease_owner = %(owner)s,
    claimed_at = clock_timestamp(),
    lease_until = clock_timestamp() + make_interval(secs => %(lease)s),
    lease_generation = greatest(
        j.lease_generation,
        ((select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint) - 1) << 32) + 1,
    attempt = j.attempt + 1,
    occurrences = j.occurrences + (j.attempt = 0 and j.cause in ('schedule', 'catchup', 'buffer'))::int,
    decided_until = case
        when j.attempt = 0 and j.cause = 'schedule' then greatest(j.decided_until, clock_timestamp())
        else j.decided_until end
from pick
where j.id between pick.id and pick.id and j.next_run_at = pick.next_run_at
  and (j.next_run_at > %(from_at)s and j.next_run_at < %(until_at)s or j.next_run_at = %(from_at)s)
returning j.id, j.next_run_at, j.lease_generation, j.handler, j.attempt, j.scheduled_for, j.cause, j.claimed_at,
          j.decided_until, j.lost,
          case when pg_column_size(j.payload) <= 256 then j.payload::text end, j.schedule::text, j.run_at,
          row(j.max_attempts, j.min_backoff_seconds, j.max_backoff_seconds, j.backoff_multiplier, j.max_lost,
              j.timeout_seconds, j.overlap, j.catchup, j.catchup_window_seconds, j.jitter_seconds, j.on_exhausted)::text,
          j.occurrences, j.kept, j.cancel_requested, j.after_current::text, j.revision, j.traceparent, j.tracestate
