-- The jobs with an alert that are to be looked at now, with what their row says and the end of their last success since
-- the one that is known; that is looked up only where it matters. Index: job_alerts_by_look; primary keys of jobs and runs,
-- by job id, in every partition.
select a.job_id, now() as now, a.since, j.state, j.next_run_at, j.lease_until,
       j.alert_after_late_seconds as after_late_seconds, j.alert_if_no_success_seconds as if_no_success_seconds,
       success.at as last_success
from job_alerts a
left join lateral (
    select k.state, k.next_run_at, k.lease_until, k.alert_after_late_seconds, k.alert_if_no_success_seconds
    from jobs k
    where k.id = a.job_id
    limit 1) as j on true
left join lateral (
    select max(r.finished_at) as at
    from runs r
    where r.job_id = a.job_id and r.claimed_at >= a.since - interval '1 day' and r.outcome = 'succeeded'
      and a.since + make_interval(secs => j.alert_if_no_success_seconds) <= now()) as success on true
where a.look_at <= now()
order by a.look_at
limit %(limit)s
