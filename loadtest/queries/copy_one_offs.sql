-- New one-offs whose ids nobody has. Index: primary keys.
copy jobs (id, next_run_at, slot, state, handler, scheduled_for, decided_until, run_at, payload, created_at, updated_at)
from stdin
