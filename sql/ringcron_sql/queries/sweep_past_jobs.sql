-- Delete ended jobs that lie in jobs_past, with their keys and tags: at most 1,000. until_at prunes every other partition.
with leaving as materialized (
    select id, next_run_at, key
    from jobs
    where next_run_at < %(until_at)s and next_run_at < %(before)s and state in ('done', 'cancelled')
    limit 1000
    for update skip locked),
unkeyed as (delete from job_keys k using leaving where k.key = leaving.key and k.job_id = leaving.id),
untagged as (delete from job_tags t using leaving where t.job_id = leaving.id),
gone as (
    delete from jobs j
    using leaving
    where j.id = leaving.id and j.next_run_at = leaving.next_run_at and j.next_run_at < %(until_at)s
    returning j.id)
select count(*) from gone
