-- Waiting cron jobs whose tick was chosen by zone rules of another version of tzdata, a portion at a time by id.
-- Run by the leader when it begins, until nothing is left: it reads every recurring job once.
-- Index: primary key (order by id); every partition, because a moved rule can concern any day.
select j.id
from jobs j
where j.id > %(after)s
  and j.state is not distinct from 'due'
  and j.schedule ? 'cron'
  and j.tzdata is distinct from %(tzdata)s
order by j.id
limit %(limit)s
