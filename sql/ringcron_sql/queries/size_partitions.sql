-- Bytes of each partition of a table, with its indexes and TOAST.
select c.relname, pg_total_relation_size(c.oid)
from pg_inherits i
join pg_class c on c.oid = i.inhrelid
where i.inhparent = %(table)s::regclass
