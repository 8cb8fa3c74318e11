-- Give keys, whose jobs are cancelled or gone, to new jobs. The caller holds the locks of the keys. Index: primary key.
update job_keys k
set job_id = given.id
from unnest(%(keys)s::text[], %(ids)s::uuid[]) as given (key, id)
where k.key = given.key
