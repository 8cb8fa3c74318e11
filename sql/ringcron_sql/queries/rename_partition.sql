-- Under lock_partitioned.
alter table {partition} rename to {new_name}
