-- Ask the worker that holds this very run to stop it: told by the bell, and by its next renewal. The revision goes up, so
-- that a run whose end is decided but not written yet, of a drain perhaps, is decided again, and not tried again.
-- Answers with the job's state and generation now, and whether the request is on the row. Index: primary key, by id alone
-- (`is not distinct from` keeps the planner off jobs_claimed).
with asked as (
    update jobs j
    set cancel_requested = true,
        revision = j.revision + (not j.cancel_requested)::int
    where j.id = %(id)s and j.state is not distinct from 'claimed' and j.lease_generation = %(generation)s
    returning j.id)
select j.state, j.lease_generation, exists (select from asked), j.lease_owner
from jobs j
where j.id = %(id)s
