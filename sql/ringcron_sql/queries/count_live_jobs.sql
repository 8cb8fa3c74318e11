-- How many jobs of a partition are due or claimed, counted up to a limit. Index: jobs_due, jobs_claimed.
select count(*)
from (select from only {partition} where state = 'due'
      union all
      select from only {partition} where state = 'claimed'
      limit %(limit)s) as live
