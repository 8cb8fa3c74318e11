-- Every table of this schema as a CREATE TABLE with its indexes and comments, in order of name; one row each. The same
-- text on every supported PostgreSQL: what newer ones add to the catalog (named NOT NULL constraints) is left out.
-- Partitions are only named, without their bounds: those depend on the day of the migration.
select format(
    E'create %stable %s (\n%s\n)%s;\n%s%s',
    case c.relpersistence when 'u' then 'unlogged ' else '' end,
    c.relname,
    concat_ws(E',\n', columns.lines, constraints.lines),
    case c.relkind when 'p' then ' partition by ' || pg_get_partkeydef(c.oid) else '' end,
    indexes.lines,
    partitions.lines)
from pg_class c
cross join lateral (
    select string_agg(
        format('    %s %s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
            coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid),
                case a.attidentity when 'a' then ' generated always as identity' else '' end),
            case when a.attnotnull then ' not null' else '' end),
        E',\n' order by a.attnum) as lines
    from pg_attribute a
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns
cross join lateral (
    select string_agg(
        format('    constraint %s %s', n.conname, pg_get_constraintdef(n.oid)),
        E',\n' order by n.contype desc, n.conname) as lines
    from pg_constraint n
    where n.conrelid = c.oid and n.contype <> 'n') as constraints
cross join lateral (
    select coalesce(string_agg(
        format(E'%s;\n', regexp_replace(pg_get_indexdef(i.indexrelid), format(' ON (ONLY )?%I\.', current_schema()), ' ON ')),
        '' order by x.relname), '') as lines
    from pg_index i
    join pg_class x on x.oid = i.indexrelid
    where i.indrelid = c.oid and not exists (select 1 from pg_constraint n where n.conindid = i.indexrelid)) as indexes
cross join lateral (
    select coalesce(string_agg(
        format(E'-- partition %s\n', p.relname),
        '' order by p.relname), '') as lines
    from pg_inherits h
    join pg_class p on p.oid = h.inhrelid
    where h.inhparent = c.oid and p.relkind in ('r', 'p')) as partitions
where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
order by c.relname
