-- How many connections the cluster has, the harness's own left out.
select count(*)::int from pg_stat_activity
where datname = current_database() and backend_type = 'client backend' and application_name <> 'ringcron loadtest'
