-- Far-future jobs in graphile-worker's own row shape; their ids are 1 to %(ballast)s.
with task as (
    insert into graphile_worker._private_tasks (identifier) values ('compare') returning id
)
insert into graphile_worker._private_jobs (task_id, payload, run_at)
select task.id, '{"seq": 0}', now() + interval '2 days' + random() * interval '360 days'
from task, generate_series(1, %(ballast)s)
