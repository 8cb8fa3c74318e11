-- The barest completion of our schema: fenced by the generation, with a run row for each. Index: primary key.
with ended as (
    select * from unnest(%(ids)b::uuid[], %(at)b::timestamptz[], %(generations)b::bigint[], %(claimed_at)b::timestamptz[])
        as e (id, next_run_at, lease_generation, claimed_at)),
done as (
    update jobs j
    set state = 'done', next_run_at = clock_timestamp(), lease_owner = null, lease_until = null, claimed_at = null
    from ended e
    where j.id = e.id and j.next_run_at = e.next_run_at and j.lease_generation = e.lease_generation
      and j.next_run_at >= %(from_at)b and j.next_run_at < %(until_at)b
    returning j.id, j.lease_generation, j.attempt, j.scheduled_for, j.cause, e.claimed_at)
insert into runs (job_id, lease_generation, claimed_at, attempt, scheduled_for, cause, worker_id,
                  started_at, finished_at, outcome)
select id, lease_generation, claimed_at, attempt, scheduled_for, cause, %(owner)s, claimed_at, clock_timestamp(), 'succeeded'
from done
