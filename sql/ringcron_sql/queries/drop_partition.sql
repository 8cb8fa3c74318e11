-- Under lock_partitioned. The file is removed after the locks are released.
drop table {partition}
