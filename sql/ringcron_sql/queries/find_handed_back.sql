-- Which of these jobs wait with an occurrence of which a run was handed back: no attempt tells it, the history does.
-- Index: primary keys of jobs and runs, by id alone, once per id (offset 0 and limit keep them from being joined as wholes).
select j.id
from unnest(%(ids)s::uuid[]) as wanted (id)
cross join lateral (
    select k.id, k.scheduled_for
    from jobs k
    where k.id = wanted.id and k.attempt = 0
    offset 0) as j
cross join lateral (
    select 1
    from runs r
    where r.job_id = j.id and r.scheduled_for = j.scheduled_for
    limit 1) as ran
