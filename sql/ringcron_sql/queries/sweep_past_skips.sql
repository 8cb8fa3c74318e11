-- Delete old skips that lie in skips_past. At most 1,000. until_at prunes every other partition.
with leaving as materialized (
    select job_id, first, decided_at
    from skips
    where decided_at < %(until_at)s and decided_at < %(before)s
    limit 1000
    for update skip locked),
gone as (
    delete from skips s
    using leaving
    where s.job_id = leaving.job_id and s.first = leaving.first
      and s.decided_at = leaving.decided_at and s.decided_at < %(until_at)s
    returning s.job_id)
select count(*) from gone
