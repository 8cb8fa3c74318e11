-- Bytes of `jobs` with its indexes, over all partitions. The catalog.
select sum(pg_total_relation_size(inhrelid)) from pg_inherits where inhparent = 'jobs'::regclass
