-- Take keys, each for its new job, or lock them where other jobs hold them; answers with the holders. Each key comes once. In
-- the order of the keys (of their code points, as Python sorts the parts of a batch), and the locks are kept to the end of
-- the transaction: of many creates with one key only one goes on at a time, two batches cannot deadlock, and the next
-- statement sees what the ones before did. Index: primary key of job_keys.
insert into job_keys (key, job_id)
select wanted.key, wanted.id
from unnest(%(keys)s::text[], %(ids)s::uuid[]) as wanted (key, id)
order by wanted.key collate "C"
on conflict (key) do update set job_id = job_keys.job_id
returning key, job_id
