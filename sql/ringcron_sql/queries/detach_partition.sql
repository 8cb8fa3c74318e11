-- Under lock_partitioned. Not CONCURRENTLY: interrupted, that hides rows and blocks itself for ever.
alter table {table} detach partition {partition}
