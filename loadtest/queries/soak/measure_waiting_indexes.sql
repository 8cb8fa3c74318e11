-- Bytes of the indexes of `jobs` that a run enters and leaves again, over all partitions. The catalog.
select coalesce(sum(pg_relation_size(inhrelid)), 0)::float8 from pg_inherits
where inhparent in ('jobs_due'::regclass, 'jobs_claimed'::regclass, 'jobs_quarantined'::regclass)
