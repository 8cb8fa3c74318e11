-- How many jobs of these handlers become due in each second of the next %(ahead)s seconds; of each handler the `most`
-- soonest are looked at. Index: jobs_due, one ordered range per handler. until_at prunes.
select ceil(extract(epoch from soon.next_run_at - now()))::int as in_seconds, count(*) as due
from unnest(%(handlers)s::text[]) as asked (handler)
cross join lateral (
    select j.next_run_at
    from jobs j
    where j.state = 'due' and j.handler = asked.handler
      and j.next_run_at > now() and j.next_run_at <= now() + make_interval(secs => %(ahead)s)
      and j.next_run_at < %(until_at)s
    order by j.next_run_at
    limit %(most)s) as soon
group by in_seconds
order by in_seconds
