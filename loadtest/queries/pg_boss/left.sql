-- How many jobs of this run pg-boss has not recorded as completed, %(most)s at most; their ids tell them from ballast.
select count(*)
from (
    select from pgboss.job
    where name = 'compare'
      and id between '00000000-0000-4000-8000-000000000000' and '00000000-0000-4000-8000-ffffffffffff'
      and state <> 'completed'
    order by id desc
    limit %(most)s
) as jobs
