-- Far-future jobs in pg-boss's own row shape.
insert into pgboss.job (name, data, start_after, keep_until, policy)
select 'compare', '{"seq": 0}', at, at + interval '14 days', 'standard'
from (
    select now() + interval '2 days' + random() * interval '360 days' as at from generate_series(1, %(ballast)s)
) as due
