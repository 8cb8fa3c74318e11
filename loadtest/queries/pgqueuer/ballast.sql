-- Far-future jobs in pgqueuer's own row shape; their ids are 1 to %(ballast)s.
insert into pgqueuer (priority, execute_after, status, entrypoint, payload)
select 0, now() + interval '2 days' + random() * interval '360 days', 'queued', 'compare', '0'
from generate_series(1, %(ballast)s)
