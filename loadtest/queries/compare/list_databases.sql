-- The names of all databases.
select datname from pg_database
