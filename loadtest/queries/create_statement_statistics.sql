-- Statement statistics, for what a run costs the database.
create extension if not exists pg_stat_statements
