-- What becomes due before until_at, by handler, schedule (null: a one-off) and second, soonest first; of each handler
-- the `most` soonest jobs are looked at, and `limit` handlers. What is due already is left to the lag.
-- Index: jobs_due, by leaps from handler to handler, then one ordered range of each. from_at and until_at prune.
with recursive found (handler, nth) as (
    (select j.handler, 1 from jobs j
     where j.state = 'due' and j.next_run_at >= %(from_at)s and j.next_run_at < %(until_at)s
     order by j.handler limit 1)
    union all
    select (select j.handler from jobs j
            where j.state = 'due' and j.next_run_at >= %(from_at)s and j.next_run_at < %(until_at)s
              and j.handler > found.handler
            order by j.handler limit 1), found.nth + 1
    from found
    where found.handler is not null and found.nth < %(limit)s)
select found.handler, soon.schedule::text as schedule, date_trunc('second', soon.next_run_at) as second,
       count(*) as jobs
from found
cross join lateral (
    select j.schedule, j.next_run_at
    from jobs j
    where j.state = 'due' and j.handler = found.handler
      and j.next_run_at >= %(from_at)s and j.next_run_at < %(until_at)s
    order by j.next_run_at
    limit %(most)s) as soon
where found.handler is not null
group by 1, 2, 3
