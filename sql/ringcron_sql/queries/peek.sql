-- What a worker waits for, always at least one row: the database's clock, the seconds until the earliest lease lapses,
-- those until the first quarantined row is due, and for each handler and arc asked for, by its rank, the seconds until
-- its first due row (negative: overdue).
-- Index: jobs_due, one probe per handler, and one per arc for those that have any; jobs_quarantined; jobs_claimed.
-- from_at and until_at prune partitions.
with clock as materialized (select clock_timestamp() as now),
lapse as materialized (
    select j.lease_until
    from jobs j
    where j.state = 'claimed' and j.next_run_at >= %(from_at)s and j.next_run_at < %(until_at)s
    order by j.lease_until
    limit 1),
solo as materialized (
    select j.next_run_at
    from jobs j
    where j.state = 'due' and j.lost > 1 and j.handler = any (%(wanted)s::text[])
      and j.next_run_at >= %(from_at)s and j.next_run_at < %(until_at)s
    order by j.next_run_at
    limit 1),
present as materialized (
    select wanted.handler, first.next_run_at
    from unnest(%(wanted)s::text[]) as wanted (handler)
    cross join lateral (
        select j.next_run_at
        from jobs j
        where j.state = 'due' and j.handler = wanted.handler and j.lost <= 1
          and j.next_run_at >= %(from_at)s and j.next_run_at < %(until_at)s
        order by j.next_run_at
        limit 1) as first)
select clock.now,
       extract(epoch from lapse.lease_until - clock.now)::float8,
       extract(epoch from solo.next_run_at - clock.now)::float8,
       head.rank,
       extract(epoch from head.next_run_at - clock.now)::float8
from clock
left join lapse on true
left join solo on true
left join lateral (
    select asked.rank,
           case when asked.lo = 0 and asked.hi = 4095 then present.next_run_at else (
               select j.next_run_at
               from jobs j
               where j.state = 'due' and j.handler = asked.handler and j.lost <= 1
                 and j.next_run_at >= %(from_at)s and j.next_run_at < %(until_at)s
                 and j.slot between asked.lo and asked.hi
               order by j.next_run_at
               limit 1) end as next_run_at
    from unnest(%(ranks)s::int[], %(handlers)s::text[], %(los)s::int[], %(his)s::int[]) as asked (rank, handler, lo, hi)
    join present on present.handler = asked.handler) as head on head.next_run_at is not null
