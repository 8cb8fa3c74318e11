-- Every run of these jobs claimed at or after an instant. Index: primary key of runs; since prunes.
select r.job_id, r.lease_generation, r.attempt, extract(epoch from r.scheduled_for)::float8, r.worker_id,
       extract(epoch from r.claimed_at)::float8, extract(epoch from r.started_at)::float8,
       extract(epoch from r.finished_at)::float8, r.outcome
from runs r
where r.job_id = any (%(ids)s::uuid[]) and r.claimed_at >= %(since)s
