-- How many jobs are late, and how many have had no success for too long. Index: job_alerts_breached.
select count(a.late_since), count(a.no_success_since)
from job_alerts a
where a.late_since is not null or a.no_success_since is not null
   or a.told_late is not null or a.told_no_success is not null
