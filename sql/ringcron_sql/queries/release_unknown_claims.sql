-- After a claim whose answer never came: hand back what this worker holds but does not know of. The owner is this
-- incarnation alone, so nobody else's claim can be meant. The attempt is given back; no run was started.
-- Index: jobs_claimed.
update jobs j
set state = 'due',
    attempt = greatest(j.attempt - 1, 0),
    occurrences = greatest(j.occurrences - (j.attempt = 1 and j.cause in ('schedule', 'catchup', 'buffer'))::int, 0),
    lease_owner = null,
    lease_until = null,
    claimed_at = null
where j.state = 'claimed'
  and j.lease_owner = %(owner)s
  and j.next_run_at >= %(from_at)s and j.next_run_at < %(until_at)s
  and (j.id, j.lease_generation) not in (
      select known.id, known.lease_generation
      from unnest(%(ids)s::uuid[], %(generations)s::bigint[]) as known (id, lease_generation))
returning j.id
