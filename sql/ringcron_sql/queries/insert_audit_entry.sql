-- Note in the transaction of a change who made it. Index: none is read.
insert into audit_log (action, job_id, key_id, key_name, request_id, detail)
values (%(action)s, %(job_id)s, %(key_id)s, %(key_name)s, %(request_id)s, %(detail)s::text::jsonb)
