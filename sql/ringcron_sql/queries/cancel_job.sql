-- Cancel a job unless a worker holds it: the one statement that decides. A lapsed lease is reaped first (run row `lost`),
-- so that it works with no worker alive; the fence then refuses whoever held it. Key and tags are given up at once.
-- Answers with the row as it was, and whether it is cancelled now; no row: there is no such job. The audit log gets who
-- did it (no `action`: nobody to name).
-- The row is found again by its id alone: one that moved while its lock was waited for (a retry, a reap) has another
-- next_run_at than this statement's snapshot, and would be passed over with its 204 given all the same.
-- The key's row is locked before the job's, as by a create with that key: the two cannot deadlock.
-- Index: job_keys_by_job; primary key of every partition, by id alone; job_tags_by_job.
with keyed as materialized (
    select k.key from job_keys k where k.job_id = %(id)s for update),
held as materialized (
    select j.id, j.state, j.lease_generation, j.lease_owner, j.lease_until, j.claimed_at,
           j.attempt, j.scheduled_for, j.cause, j.state = 'claimed' and j.lease_until < now() as lapsed
    from jobs j
    where j.id = %(id)s and (select count(*) from keyed) >= 0
    for update),
cancelled as (
    update jobs j
    set state = 'cancelled',
        next_run_at = clock_timestamp(),
        kept = null,
        after_current = null,
        cancel_requested = false,
        lease_owner = null,
        lease_until = null,
        claimed_at = null,
        revision = j.revision + 1,
        updated_at = clock_timestamp()
    from held
    where j.id = %(id)s and j.id = held.id
      and (held.state in ('due', 'paused', 'dead') or held.lapsed)
    returning j.id),
ran as (
    insert into runs (job_id, lease_generation, claimed_at, attempt, scheduled_for, cause, worker_id,
                      started_at, finished_at, outcome, error)
    select held.id, held.lease_generation, held.claimed_at, held.attempt, held.scheduled_for, held.cause,
           held.lease_owner, held.claimed_at, clock_timestamp(), 'lost',
           'the lease lapsed and its worker did not come back'
    from held
    join cancelled on cancelled.id = held.id
    where held.lapsed),
freed as (
    delete from job_keys k
    using keyed, cancelled
    where k.key = keyed.key and k.job_id = cancelled.id),
untagged as (
    delete from job_tags t
    using cancelled
    where t.job_id = cancelled.id),
noted as (
    insert into audit_log (action, job_id, key_id, key_name, request_id, detail)
    select %(action)s::text, cancelled.id, %(key_id)s::text, %(key_name)s::text, %(request_id)s::text,
           %(detail)s::text::jsonb
    from cancelled
    where %(action)s::text is not null)
select held.state, exists (select from cancelled), held.lease_owner, held.lease_until, held.lease_generation
from held
