-- A breach, or its end (null), was told. Index: primary key of job_alerts.
update job_alerts a
set told_late = case when %(kind)s = 'late' then %(began)s else a.told_late end,
    told_no_success = case when %(kind)s = 'no-success' then %(began)s else a.told_no_success end
where a.job_id = %(job_id)s
