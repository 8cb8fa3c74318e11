-- How many jobs after the ballast procrastinate has not recorded as succeeded, %(most)s at most.
select count(*)
from (
    select from procrastinate_jobs where id > %(ballast)s and status <> 'succeeded' order by id desc limit %(most)s
) as jobs
