-- How many seconds ago the oldest transaction began, prepared ones included, that keeps this database's dead rows from
-- being removed. Transactions of other roles count only if ours may see them (pg_read_all_stats). Reads no table of ours.
select coalesce(max(extract(epoch from clock_timestamp() - open.since)), 0)::float8
from (
    select a.xact_start
    from pg_stat_activity a
    where (a.backend_xid is not null or a.backend_xmin is not null)
      and a.datname = current_database()
      and a.pid <> pg_backend_pid()
      and a.backend_type <> 'autovacuum worker'
    union all
    select p.prepared from pg_prepared_xacts p where p.database = current_database()) as open (since)
