-- Under lock_partitioned. Reads the partition once, to see that its rows lie within the bounds.
alter table {table} attach partition {partition} for values from ({lower}) to ({upper})
