-- How many runs of a job name each worker has ended. The tables of a chaos run are small.
select r.worker_id, count(*)::int
from runs r
join jobs j on j.id = r.job_id
where j.name like %(pattern)s and r.outcome = 'succeeded'
group by r.worker_id
