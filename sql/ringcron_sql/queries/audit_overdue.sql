-- The auditor: enabled jobs that were due before until_at and that nobody holds, by handler: how many (`most` of each
-- at most), how long the oldest has waited, and its id. Retries and quarantined jobs are among them. At most `limit`
-- handlers. Index: jobs_due, by leaps from handler to handler, then one ordered range of each; jobs_claimed.
with recursive found (handler, nth) as (
    (select j.handler, 1 from jobs j
     where j.state = 'due' and j.next_run_at < %(until_at)s
     order by j.handler limit 1)
    union all
    select (select j.handler from jobs j
            where j.state = 'due' and j.next_run_at < %(until_at)s and j.handler > found.handler
            order by j.handler limit 1), found.nth + 1
    from found
    where found.handler is not null and found.nth < %(limit)s),
forgotten as (
    select old.handler, old.since, old.id
    from found
    cross join lateral (
        select j.handler, j.next_run_at as since, j.id
        from jobs j
        where j.state = 'due' and j.handler = found.handler and j.next_run_at < %(until_at)s
        order by j.next_run_at
        limit %(most)s) as old
    where found.handler is not null
    union all
    (select j.handler, j.lease_until, j.id
     from jobs j
     where j.state = 'claimed' and j.lease_until < %(until_at)s
     order by j.lease_until
     limit %(most)s))
select f.handler, count(*) as jobs, extract(epoch from now() - min(f.since))::float8 as oldest_seconds,
       (array_agg(f.id order by f.since))[1] as oldest_id
from forgotten f
group by f.handler
order by oldest_seconds desc
