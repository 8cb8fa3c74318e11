-- Every run claimed in these bounds, in no order. since and until prune; index: runs_by_claim.
select r.job_id, r.lease_generation, r.attempt, extract(epoch from r.scheduled_for)::float8, r.worker_id,
       extract(epoch from r.claimed_at)::float8, extract(epoch from r.started_at)::float8,
       extract(epoch from r.finished_at)::float8, r.outcome
from runs r
where r.claimed_at >= %(since)s and r.claimed_at < %(until)s
