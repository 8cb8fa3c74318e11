-- How many jobs of these handlers are due and unclaimed, by handler and slot, and how long the oldest of them has
-- waited; of each handler the `most` oldest are looked at. Always at least one row, for the clock.
-- Index: jobs_due, one ordered range per handler, cut off at `most`. until_at only prunes the days ahead.
with clock as materialized (select now() as now),
overdue as (
    select asked.handler, late.slot, count(*) as due, min(late.next_run_at) as oldest
    from unnest(%(handlers)s::text[]) as asked (handler)
    cross join lateral (
        select j.slot, j.next_run_at
        from jobs j
        where j.state = 'due' and j.handler = asked.handler
          and j.next_run_at < %(until_at)s and j.next_run_at <= now()
        order by j.next_run_at
        limit %(most)s) as late
    group by asked.handler, late.slot)
select clock.now, overdue.handler, overdue.slot, overdue.due, extract(epoch from clock.now - overdue.oldest)::float8
from clock
left join overdue on true
order by overdue.handler, overdue.slot
