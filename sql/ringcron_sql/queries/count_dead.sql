-- How many jobs are dead, `limit` at most. Index: jobs_set_aside of the far partition, where dead rows are parked.
select count(*)
from (
    select from jobs j
    where j.state = 'dead' and j.next_run_at = timestamptz '9500-01-01 00:00:00+00'
    order by j.id
    limit %(limit)s) as dead
