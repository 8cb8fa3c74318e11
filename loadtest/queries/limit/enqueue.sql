-- Jobs whose ids the caller chooses. Index: primary key.
insert into jobs (
    id, next_run_at, slot, state, handler, scheduled_for, decided_until, run_at, payload, created_at, updated_at)
select id, at, slot, 'due', 'loadtest', at, now(), at, payload::jsonb, now(), now()
from unnest(%(ids)b::uuid[], %(at)b::timestamptz[], %(slots)b::smallint[], %(payloads)s::text[])
    as new (id, at, slot, payload)
