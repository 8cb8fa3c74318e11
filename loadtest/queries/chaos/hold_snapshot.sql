-- Take the snapshot. Index: none, one row of a small table.
select count(*) from workers
