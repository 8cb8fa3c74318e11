-- How many jobs of each handler and slot are due and unclaimed, and how long the oldest of them has waited. Always at
-- least one row, for the clock.
-- Index: jobs_due, one range per handler, so that a backlog of other handlers costs nothing. until_at only prunes the
-- days ahead; there is no lower bound, because a job that was forgotten in an old day must show.
with clock as materialized (select now() as now),
overdue as (
    select j.handler, j.slot, count(*) as due, min(j.next_run_at) as oldest
    from jobs j
    where j.state = 'due'
      and (%(handlers)s::text[] is null or j.handler = any(%(handlers)s::text[]))
      and j.next_run_at < %(until_at)s
      and j.next_run_at <= now()
    group by j.handler, j.slot)
select clock.now, overdue.handler, overdue.slot, overdue.due, extract(epoch from clock.now - overdue.oldest)::float8
from clock
left join overdue on true
order by overdue.slot, overdue.handler
