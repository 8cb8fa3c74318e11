-- Whether there is a record of a run. Index: primary key of every partition of runs; rarely asked.
select from runs r where r.job_id = %(id)s and r.lease_generation = %(generation)s
