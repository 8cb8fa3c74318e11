-- Remove the keys and tags of ended jobs in the given bounds, which are about to leave: the next 1,000 such jobs by id.
-- Answers with the last of them. A key that has gone over to another job stays.
-- Index: primary key of the one partition in the bounds; primary key of job_keys; job_tags_by_job.
with leaving as materialized (
    select id, key
    from jobs
    where next_run_at >= %(from_at)s and next_run_at < %(until_at)s
      and state in ('done', 'cancelled')
      and (key is not null or tags <> '{}')
      and id > %(after)s
    order by id
    limit 1000),
unkeyed as (delete from job_keys k using leaving where k.key = leaving.key and k.job_id = leaving.id),
untagged as (delete from job_tags t using leaving where t.job_id = leaving.id)
select id from leaving order by id desc limit 1
