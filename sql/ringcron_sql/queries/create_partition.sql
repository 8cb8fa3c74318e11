-- A table that can become a partition: the parent's columns, CHECKs and indexes. Locks nothing that traffic needs.
create table {partition} (like {table} including all)
