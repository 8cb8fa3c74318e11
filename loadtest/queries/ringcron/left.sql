-- How many jobs that are due by %(until)s have not been recorded as ended, %(most)s at most. Indexes: jobs_due, jobs_claimed.
select count(*)
from (
    (select from jobs where state = 'claimed' limit %(most)s)
    union all
    (select from jobs where state = 'due' and handler = 'loadtest' and next_run_at <= %(until)s limit %(most)s)
    limit %(most)s
) as jobs
