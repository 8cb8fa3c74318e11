-- New jobs that have an alert, each once. Index: primary key of job_alerts.
insert into job_alerts (job_id, since, look_at)
select watched.id, %(since)s, %(since)s from unnest(%(ids)s::uuid[]) as watched (id)
on conflict do nothing
