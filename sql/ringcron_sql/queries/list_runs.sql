-- The runs of a job, newest first; the one in progress comes from the job row, where its end and outcome are null.
-- before is exclusive. One statement, so that a run that ends meanwhile is seen once.
-- Index: primary keys; runs backwards, merged. from_at and until_at prune runs by claim time, jobs is probed by id alone
-- (`is not distinct from` keeps the planner off jobs_claimed, which may be long where statistics call it short).
(select j.lease_generation, j.attempt, j.scheduled_for, j.cause, j.lease_owner as worker_id,
        j.claimed_at as started_at, null::timestamptz as finished_at, null::text as outcome,
        null::text as error, null::text as result
 from jobs j
 where j.id = %(id)s and j.state is not distinct from 'claimed' and j.lease_generation < %(before)s)
union all
(select r.lease_generation, r.attempt, r.scheduled_for, r.cause, r.worker_id,
        r.started_at, r.finished_at, r.outcome, r.error, r.result::text
 from runs r
 where r.job_id = %(id)s
   and r.lease_generation < %(before)s
   and r.claimed_at >= %(from_at)s and r.claimed_at < %(until_at)s
 order by r.lease_generation desc
 limit %(limit)s)
order by lease_generation desc
limit %(limit)s
