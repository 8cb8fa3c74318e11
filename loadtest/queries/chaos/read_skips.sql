-- Every skip; the tables of a chaos run are small.
select job_id::text as job, extract(epoch from first)::float8 as first, extract(epoch from last)::float8 as last, count,
       reason, extract(epoch from decided_at)::float8 as decided_at
from skips
order by decided_at
