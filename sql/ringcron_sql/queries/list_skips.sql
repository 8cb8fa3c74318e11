-- The skips of a job, newest first. before_first and before_decided_at are exclusive, together.
-- Index: primary key of skips backwards, merged. from_at and until_at prune by the time of the decision.
select s.first, s.last, s.count, s.reason, s.decided_at
from skips s
where s.job_id = %(id)s
  and (s.first, s.decided_at) < (%(before_first)s, %(before_decided_at)s)
  and s.decided_at >= %(from_at)s and s.decided_at < %(until_at)s
order by s.first desc, s.decided_at desc
limit %(limit)s
