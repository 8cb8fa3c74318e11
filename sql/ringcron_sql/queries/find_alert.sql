-- Since when a job breaches its alerts (null: it does not); no row where it has none. Index: primary key of job_alerts.
select a.late_since, a.no_success_since
from job_alerts a
where a.job_id = %(job_id)s
