-- After a refused write: had an earlier, unanswered try of it landed, and which generation does the row hold now?
-- Index: primary keys, by id alone on jobs.
select mine.id, mine.lease_generation,
       exists (select from runs r
               where r.job_id = mine.id and r.lease_generation = mine.lease_generation and r.worker_id = %(owner)s
                 and r.claimed_at >= %(claimed_from)s and r.outcome <> 'lost'),
       (select max(j.lease_generation) from jobs j where j.id = mine.id)
from unnest(%(ids)s::uuid[], %(generations)s::bigint[]) as mine (id, lease_generation)
