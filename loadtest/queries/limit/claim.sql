-- The barest claim of our schema: the oldest due jobs, with a lease and a higher generation. Indexes: jobs_due, primary key.
-- The bounds prune partitions, as in every statement of ringcron's on jobs.
with pick as materialized (
    select id, next_run_at
    from jobs
    where state = 'due' and handler = 'loadtest'
      and next_run_at >= %(from_at)b and next_run_at < %(until_at)b and next_run_at <= now()
    order by next_run_at
    limit 500
    for update skip locked)
update jobs j
set state = 'claimed',
    lease_owner = %(owner)s,
    claimed_at = clock_timestamp(),
    lease_until = clock_timestamp() + interval '15 seconds',
    lease_generation = j.lease_generation + 1,
    attempt = j.attempt + 1
from pick
where j.id = pick.id and j.next_run_at = pick.next_run_at
  and j.next_run_at >= %(from_at)b and j.next_run_at < %(until_at)b
returning j.id, j.next_run_at, j.lease_generation, j.claimed_at
