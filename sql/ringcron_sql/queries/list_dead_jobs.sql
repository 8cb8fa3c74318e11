-- Dead jobs, the one that was created first coming first. after is exclusive; null filters do not filter. A fingerprint
-- is as in group_dead_jobs.
-- Index: jobs_set_aside of the far partition, where dead rows are parked; for a tag the primary keys of job_tags and jobs.
-- A custom plan each time: the filters that are null fall away.
select j.id
from jobs j
where j.state = 'dead'
  and j.next_run_at = timestamptz '9500-01-01 00:00:00+00'
  and j.id > %(after)s
  and (%(handler)s::text is null or j.handler = %(handler)s)
  and (%(tag)s::text is null or exists (select from job_tags t where t.tag = %(tag)s and t.job_id = j.id))
  and (%(fingerprint)s::text is null or error_fingerprint(j.handler, j.dead_reason) = %(fingerprint)s)
order by j.id
limit %(limit)s
