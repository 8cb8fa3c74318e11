-- Seconds until the next job is due, null when there is none. Index: jobs_due.
select extract(epoch from next_run_at - clock_timestamp())::float8
from jobs
where state = 'due' and handler = 'loadtest'
order by next_run_at
limit 1
