-- How many jobs of a handler are due now, and how many of them a running transaction holds locked: a claim that comes now
-- passes over those (SKIP LOCKED). Read from the rows' xmax, so that the count itself locks nothing.
-- Index: jobs_due.
select count(*), count(*) filter (where j.xmax in (select a.backend_xid from pg_stat_activity a))
from jobs j
where j.state = 'due' and j.handler = %(handler)s and j.next_run_at <= now()
  and j.next_run_at >= now() - interval '1 day'
