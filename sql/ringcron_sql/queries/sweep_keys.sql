-- Remove the keys and tags of ended jobs in the given bounds, which are about to leave: the next 1,000 such jobs by id.
-- Answers with the last of them. A key that has gone over to another job stays, and so do key and tags of a job that a
-- create with its key brings back meanwhile (without a key nothing does): the rows of the keys are locked first, in the
-- order of hold_keys, then those of the jobs, and the state under that lock counts. A job that has come back has left the
-- bounds: PostgreSQL then refuses its lock (40001), and the statement is tried again.
-- Index: primary key of the one partition in the bounds; job_keys_by_job or primary key of job_keys; job_tags_by_job.
with ended as materialized (
    select id, next_run_at, key
    from jobs
    where next_run_at >= %(from_at)s and next_run_at < %(until_at)s
      and state in ('done', 'cancelled')
      and (key is not null or tags <> '{}')
      and id > %(after)s
    order by id
    limit 1000),
keyed as materialized (
    select k.key
    from (select key, id from ended where key is not null order by key collate "C") as wanted
    cross join lateral (
        select h.key from job_keys h where h.key = wanted.key and h.job_id = wanted.id for update offset 0) as k),
leaving as materialized (
    select j.id, j.key
    from ended
    cross join lateral (
        select k.id, k.key
        from jobs k
        where k.id = ended.id and k.next_run_at = ended.next_run_at
          and k.next_run_at >= %(from_at)s and k.next_run_at < %(until_at)s
          and k.state in ('done', 'cancelled')
          and (select count(*) from keyed) >= 0
        for update
        offset 0) as j),
unkeyed as (delete from job_keys k using leaving where k.key = leaving.key and k.job_id = leaving.id),
untagged as (delete from job_tags t using leaving where t.job_id = leaving.id)
select id from ended order by id desc limit 1
