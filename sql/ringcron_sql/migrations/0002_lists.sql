-- What the API needs for its lists and for cancels, and the claim path does not pay for.

-- jobs?state=paused, dead, cancelled: a handful among millions; a row enters only when a person or a fault sets it aside
create index jobs_set_aside on jobs (state, id) where state in ('paused', 'dead', 'cancelled');
-- jobs?name=: only named jobs are in it
create index jobs_named on jobs (name, id) where name is not null;

-- DELETE /jobs/{id}: the key of a job
create index job_keys_by_job on job_keys (job_id);
