"""The limit: what bare SQL on our own schema does on this machine, the yardstick of `loadtest compare`.

One definition, of two styles. Both claim up to 500 due jobs in one statement, write each start down, and complete them
in one statement that also writes the run rows; both sleep by a timer until the next job is due; every statement is
committed by itself, durably. Neither renews a lease, reaps, helps, hands back, knows slots or counts anything.

- `batches`: no more than that; as many processes as the row of the table has workers.
- `tasks`: one asyncio process, which makes a task for each job, as whoever calls handlers must.

A scheduler cannot beat it: whatever it adds costs something.
"""
