-- How many runs each worker has in progress. Index: jobs_claimed.
select lease_owner, count(*)::int from jobs where state = 'claimed' group by lease_owner
