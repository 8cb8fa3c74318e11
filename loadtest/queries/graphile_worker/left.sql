-- How many jobs after the ballast graphile-worker has not recorded as complete, %(most)s at most: complete ones leave.
select count(*)
from (select from graphile_worker._private_jobs where id > %(ballast)s order by id desc limit %(most)s) as jobs
