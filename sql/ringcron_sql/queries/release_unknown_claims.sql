-- After a claim whose answer never came: hand back what this worker holds but does not know of. The owner is this
-- incarnation alone, so nobody else's claim can be meant. The attempt is given back; no run was started.
-- What waited for the run (after_current: cancel, pause) takes effect. decided_until stays where the claim moved it: cause,
-- attempt and scheduled_for tell that nothing was settled (ringcron.undecided).
-- claimed_by: nothing that was claimed later. A server that was frozen may carry this out when its client has long given
-- up, asked once more and claimed again.
-- Index: jobs_claimed.
update jobs j
set state = case
        when j.after_current ? 'cancel' then 'cancelled' when j.after_current ? 'pause' then 'paused' else 'due' end,
    next_run_at = case
        when j.after_current ? 'cancel' then clock_timestamp()
        when j.after_current ? 'pause' then timestamptz '9500-01-01 00:00:00+00'
        else j.next_run_at end,
    pause_reason = case when not j.after_current ? 'cancel' then j.after_current #>> '{pause,reason}' end,
    paused_by = case when not j.after_current ? 'cancel' then j.after_current #>> '{pause,by}' end,
    after_current = case when not j.after_current ? 'cancel' then nullif(j.after_current - 'pause', '{}') end,
    attempt = greatest(j.attempt - 1, 0),
    occurrences = greatest(j.occurrences - (j.attempt = 1 and j.cause in ('schedule', 'catchup', 'buffer'))::int, 0),
    lease_owner = null,
    lease_until = null,
    claimed_at = null
where j.state = 'claimed'
  and j.lease_owner = %(owner)s
  and j.claimed_at <= %(claimed_by)s
  and j.next_run_at >= %(from_at)s and j.next_run_at < %(until_at)s
  and (j.id, j.lease_generation) not in (
      select known.id, known.lease_generation
      from unnest(%(ids)s::uuid[], %(generations)s::bigint[]) as known (id, lease_generation))
returning j.id
