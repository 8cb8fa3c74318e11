-- Of each table, its partitions taken together: name, dead rows, live rows, bytes, bytes of indexes. Statistics and the
-- catalog.
select coalesce(p.relname, c.relname), sum(s.n_dead_tup)::float8, sum(s.n_live_tup)::float8,
       sum(pg_table_size(c.oid))::float8, sum(pg_indexes_size(c.oid))::float8
from pg_stat_user_tables s
join pg_class c on c.oid = s.relid and c.relkind = 'r'
left join pg_inherits i on i.inhrelid = c.oid
left join pg_class p on p.oid = i.inhparent
group by 1
