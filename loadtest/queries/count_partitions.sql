-- How many partitions `jobs` has. The catalog.
select count(*) from pg_inherits where inhparent = 'jobs'::regclass
