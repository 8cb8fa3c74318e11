-- How many connections the workers have.
select count(*)::int from pg_stat_activity
where datname = current_database() and application_name like 'worker-%'
