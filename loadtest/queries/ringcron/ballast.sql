-- Far-future one-offs of ringcron, spread over the slots.
insert into jobs (
    id, next_run_at, slot, state, handler, scheduled_for, decided_until, run_at, payload, created_at, updated_at)
select gen_random_uuid(), at, floor(random() * 4096), 'due', 'loadtest', at, now(), at, '{"seq": 0}', now(), now()
from (
    select now() + interval '2 days' + random() * interval '360 days' as at from generate_series(1, %(ballast)s)
) as due
