-- Which of these jobs an earlier, unanswered try has stored; they may have run since. Index: primary key of every
-- partition, by id alone; only where a connection was lost.
select j.id from jobs j where j.id = any(%(ids)s::uuid[])
