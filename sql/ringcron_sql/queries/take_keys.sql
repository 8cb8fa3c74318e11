-- Take those of the keys that nobody has, each for its new job; answers with these jobs. In the order of the keys, so that
-- two batches do not wait for each other. Of a key that comes twice the first job gets it. Index: primary key of job_keys.
insert into job_keys (key, job_id)
select wanted.key, wanted.id
from unnest(%(keys)s::text[], %(ids)s::uuid[]) with ordinality as wanted (key, id, place)
order by wanted.key, wanted.place
on conflict (key) do nothing
returning job_id
