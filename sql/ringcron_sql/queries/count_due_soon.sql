-- How many jobs will fall due within %(ahead)s seconds, of the handlers that some worker has which reported within
-- %(seen_within)s seconds. Index: jobs_due, one range per handler. from_at, until_at prune.
select count(*)
from jobs j
where j.state = 'due'
  and j.handler = any (array(
      select distinct known.handler
      from workers w cross join unnest(w.handlers) as known (handler)
      where w.seen_at >= now() - make_interval(secs => %(seen_within)s)))
  and j.next_run_at >= %(from_at)s and j.next_run_at < %(until_at)s
  and j.next_run_at > now() and j.next_run_at <= now() + make_interval(secs => %(ahead)s)
