-- The database's clock, and whether jobs of a handler with a next_run_at in these bounds are still due or claimed.
-- Index: jobs_due; jobs_claimed. from_at and until_at prune.
select extract(epoch from clock_timestamp())::float8,
       exists (select from jobs j
               where j.state = 'due' and j.handler = %(handler)s
                 and j.next_run_at >= %(from_at)s and j.next_run_at < %(until_at)s)
       or exists (select from jobs j
                  where j.state = 'claimed' and j.handler = %(handler)s
                    and j.next_run_at >= %(from_at)s and j.next_run_at < %(until_at)s)
