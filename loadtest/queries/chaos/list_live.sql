-- What is still to be run: state, how many, seconds since the oldest next claim was possible, seconds since the oldest
-- lease lapsed. Index: jobs_due, jobs_claimed; the tables of a chaos run are small.
select state, count(*)::int, extract(epoch from clock_timestamp() - min(next_run_at))::float8,
       extract(epoch from clock_timestamp() - min(lease_until))::float8
from jobs
where state in ('due', 'claimed')
group by state
