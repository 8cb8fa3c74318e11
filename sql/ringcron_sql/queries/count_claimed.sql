-- How many jobs each worker has claimed, and in how many seconds the first of its leases lapses.
-- Index: jobs_claimed; there are as many rows as the pool has places.
select j.lease_owner, count(*) as running, extract(epoch from min(j.lease_until) - now())::float8 as lapses_in
from jobs j
where j.state = 'claimed' and j.next_run_at < %(until_at)s
group by j.lease_owner
