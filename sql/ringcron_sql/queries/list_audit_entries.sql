-- What callers did to a job, the newest first, before an entry. Index: audit_log_by_job, backwards.
select id, at, action, key_id, key_name, request_id, detail
from audit_log
where job_id = %(job_id)s and id < %(before)s
order by id desc
limit %(limit)s
