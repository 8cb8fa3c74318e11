-- A table that can become a partition: the parent's columns, CHECKs and indexes. Locks nothing that traffic needs.
-- Vacuumed early: a claim walks over the index entries of what was claimed before it, 1,000 blocks of them where 200,000
-- jobs have gone through a day, and the default waits for a fifth of the day's rows.
create table {partition} (like {table} including all)
with (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0.02)
