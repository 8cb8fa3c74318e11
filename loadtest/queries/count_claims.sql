-- Claims since the statistics were reset, and the jobs that they brought.
select coalesce(sum(s.calls), 0)::bigint, coalesce(sum(s.rows), 0)::bigint
from pg_stat_statements s
join pg_database d on d.oid = s.dbid
where d.datname = current_database() and s.toplevel and s.query like 'with pick as materialized%%for update skip locked%%'
