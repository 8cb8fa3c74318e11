-- How many runs began in each second of [from_at, until_at): those that have ended, and those in progress.
-- Index: runs_by_claim, the end of a day; jobs_claimed.
select extract(epoch from date_trunc('second', began.claimed_at))::bigint as second, count(*) as started
from (
    select r.claimed_at
    from runs r
    where r.claimed_at >= %(from_at)s and r.claimed_at < %(until_at)s
    union all
    select j.claimed_at
    from jobs j
    where j.state = 'claimed' and j.next_run_at < %(until_at)s
      and j.claimed_at >= %(from_at)s and j.claimed_at < %(until_at)s) as began
group by second
