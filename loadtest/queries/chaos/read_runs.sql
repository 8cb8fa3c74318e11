-- Every run; the tables of a chaos run are small.
select job_id::text as job, lease_generation as generation, extract(epoch from claimed_at)::float8 as claimed_at,
       extract(epoch from finished_at)::float8 as finished_at, attempt,
       extract(epoch from scheduled_for)::float8 as scheduled_for, cause, worker_id as worker, outcome
from runs
order by claimed_at
