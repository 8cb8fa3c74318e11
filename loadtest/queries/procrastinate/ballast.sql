-- Far-future jobs in procrastinate's own row shape; their ids are 1 to %(ballast)s.
insert into procrastinate_jobs (queue_name, task_name, args, scheduled_at)
select 'default', 'compare', '{"seq": 0}', now() + interval '2 days' + random() * interval '360 days'
from generate_series(1, %(ballast)s)
