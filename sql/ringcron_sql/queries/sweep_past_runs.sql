-- Delete old runs that lie in runs_past: those of claims older than the retention that ended within it, and whose time is
-- up now. At most 1,000. until_at prunes every other partition.
with leaving as materialized (
    select job_id, lease_generation, claimed_at
    from runs
    where claimed_at < %(until_at)s and finished_at < %(before)s
    limit 1000
    for update skip locked),
gone as (
    delete from runs r
    using leaving
    where r.job_id = leaving.job_id and r.lease_generation = leaving.lease_generation
      and r.claimed_at = leaving.claimed_at and r.claimed_at < %(until_at)s
    returning r.job_id)
select count(*) from gone
