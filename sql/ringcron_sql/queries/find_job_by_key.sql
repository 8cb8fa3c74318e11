-- The job that holds a business key. Index: primary key of job_keys.
select k.job_id from job_keys k where k.key = %(key)s
