-- What a worker waits for, always at least one row: the database's clock, the seconds until the earliest lease lapses,
-- those until the first quarantined row is due, whether a row is due now that lies outside arcs_from_at and
-- arcs_until_at, and for each handler and arc asked for, by its rank, the seconds until its first due row (negative:
-- overdue). Of a part of the ring only what falls due within `horizon` seconds is looked for: there may be a million rows
-- of other slots before the next of its own.
-- Index: jobs_due, one probe per handler, and one per arc for those that have any; jobs_quarantined; jobs_claimed.
-- from_at and until_at prune partitions, arcs_from_at and arcs_until_at those that are looked into arc by arc.
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
       exists (
           select from (select next_run_at from present union all select next_run_at from solo) as first
           where first.next_run_at <= clock.now
             and (first.next_run_at < %(arcs_from_at)s or first.next_run_at >= %(arcs_until_at)s)),
       head.rank,
       extract(epoch from head.next_run_at - clock.now)::float8
from clock
left join lapse on true
left join solo on true
left join lateral (
    select asked.rank,
           case when asked.lo = 0 and asked.hi = 4095 then present.next_run_at
           when present.next_run_at < horizon.at then (
               select j.next_run_at
               from jobs j
               where j.state = 'due' and j.handler = asked.handler and j.lost <= 1
                 and j.next_run_at >= %(arcs_from_at)s and j.next_run_at < %(arcs_until_at)s
                 and j.next_run_at < horizon.at
                 and j.slot between asked.lo and asked.hi
               order by j.next_run_at
               limit 1) end as next_run_at
    from (select clock.now + make_interval(secs => %(horizon)s) as at) as horizon
    cross join unnest(%(ranks)s::int[], %(handlers)s::text[], %(los)s::int[], %(his)s::int[])
        as asked (rank, handler, lo, hi)
    join present on present.handler = asked.handler) as head on head.next_run_at is not null
