-- What this database was asked since the last reset, the most called first: the first 100 characters, calls, ms.
select left(regexp_replace(s.query, '\s+', ' ', 'g'), 100), s.calls, s.total_exec_time
from pg_stat_statements s
join pg_database d on d.oid = s.dbid
where d.datname = current_database() and s.toplevel
order by s.calls desc
