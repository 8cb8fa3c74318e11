-- The partitions of a table in the order of their bounds (null: unbounded), and the database's now. From the catalog.
-- Run after limit_transaction: the bounds are text in the catalog, read here in UTC and ISO 8601.
select c.relname,
       substring(bound from $$FROM \('([^']+)'\)$$)::timestamptz as lower,
       substring(bound from $$TO \('([^']+)'\)$$)::timestamptz as upper,
       now()
from pg_inherits i
join pg_class c on c.oid = i.inhrelid
cross join lateral pg_get_expr(c.relpartbound, c.oid) as bound
where i.inhparent = %(table)s::regclass
order by lower nulls first
