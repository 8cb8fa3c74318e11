-- Take a key for a new job, or lock it where another job holds it; answers with the holder. The lock is kept to the end of
-- the transaction, so of many creates with one key only one goes on at a time, and the next statement sees its job.
-- Index: primary key of job_keys.
insert into job_keys (key, job_id)
values (%(key)s, %(id)s)
on conflict (key) do update set job_id = job_keys.job_id
returning job_id
