-- Move the due and claimed jobs of a partition that is about to go to another, and count them. Under lock_partitioned.
-- Index: jobs_due, jobs_claimed.
with live as (
    select * from only {source} where state = 'due'
    union all
    select * from only {source} where state = 'claimed'),
arrived as (insert into {target} select * from live)
select count(*) from live
