-- Which of these jobs an earlier, unanswered try has stored; they may have run since. Index: primary key of every
-- partition, by id alone, once per id; only where a connection was lost.
select wanted.id
from unnest(%(ids)s::uuid[]) as wanted (id)
where exists (select from jobs j where j.id = wanted.id offset 0)
