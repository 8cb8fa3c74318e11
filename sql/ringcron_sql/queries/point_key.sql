-- Give a key, whose job is cancelled or gone, to a new job. The caller holds the key's lock. Index: primary key.
update job_keys set job_id = %(id)s where key = %(key)s
