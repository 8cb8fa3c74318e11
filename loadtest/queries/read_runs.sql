-- Every run claimed at or after an instant, in order of claim. since prunes; the days that are left are read whole.
select r.job_id, r.lease_generation, r.attempt, extract(epoch from r.scheduled_for)::float8, r.worker_id,
       extract(epoch from r.claimed_at)::float8, extract(epoch from r.started_at)::float8,
       extract(epoch from r.finished_at)::float8, r.outcome
from runs r
where r.claimed_at >= %(since)s
order by r.claimed_at
