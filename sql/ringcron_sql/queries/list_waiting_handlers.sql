-- The handlers that jobs wait for before until_at, but for those in `known`, and of each how many jobs are due (`most`
-- at most) and how long the oldest has waited. At most `limit` handlers are looked at.
-- Index: jobs_due, by leaps from handler to handler, then one ordered range of each.
with recursive found (handler, nth) as (
    (select j.handler, 1 from jobs j
     where j.state = 'due' and j.next_run_at < %(until_at)s
     order by j.handler limit 1)
    union all
    select (select j.handler from jobs j
            where j.state = 'due' and j.next_run_at < %(until_at)s and j.handler > found.handler
            order by j.handler limit 1), found.nth + 1
    from found
    where found.handler is not null and found.nth < %(limit)s)
select found.handler, late.due, extract(epoch from now() - late.oldest)::float8
from found
cross join lateral (
    select count(*) as due, min(due.next_run_at) as oldest
    from (
        select j.next_run_at
        from jobs j
        where j.state = 'due' and j.handler = found.handler
          and j.next_run_at < %(until_at)s and j.next_run_at <= now()
        order by j.next_run_at
        limit %(most)s) as due) as late
where found.handler is not null and found.handler <> all (%(known)s::text[]) and late.due > 0
