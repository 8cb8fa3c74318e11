-- What looks came to. Index: primary key of job_alerts.
with seen as materialized (
    select *
    from json_to_recordset(%(rows)s::json) as s (
        job_id uuid, since timestamptz, look_at timestamptz, late_since timestamptz, no_success_since timestamptz,
        over boolean)),
ended as (
    delete from job_alerts a using seen where a.job_id = seen.job_id and seen.over)
update job_alerts a
set since = seen.since, look_at = seen.look_at, late_since = seen.late_since, no_success_since = seen.no_success_since
from seen
where a.job_id = seen.job_id and not seen.over
