-- Move the rows before an instant to another partition, and count them. Under lock_partitioned.
with moved as (delete from only {source} where {column} < %(at)s returning *),
arrived as (insert into {target} select * from moved)
select count(*) from moved
