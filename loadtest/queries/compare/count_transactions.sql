-- Transactions of this database since its beginning, as flushed by the sessions so far.
select xact_commit + xact_rollback from pg_stat_database where datname = current_database()
