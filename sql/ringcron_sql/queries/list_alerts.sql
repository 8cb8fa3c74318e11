-- The jobs that breach their alert, or whose breach is over and has not been told, by id. Index: job_alerts_breached;
-- primary key of jobs, by id, in every partition.
select a.job_id, a.late_since, a.no_success_since, a.told_late, a.told_no_success, j.key, j.name, j.handler, j.state,
       j.alert_after_late_seconds as after_late_seconds, j.alert_if_no_success_seconds as if_no_success_seconds
from job_alerts a
cross join lateral (
    select k.key, k.name, k.handler, k.state, k.alert_after_late_seconds, k.alert_if_no_success_seconds
    from jobs k
    where k.id = a.job_id
    limit 1) as j
where a.late_since is not null or a.no_success_since is not null
   or a.told_late is not null or a.told_no_success is not null
order by a.job_id
limit %(limit)s
