-- Write down what first claims decided of missed ticks, before their handlers start. Fenced; skips come only from rows
-- that the fence let pass. `release`: nothing is to be run now, the attempt is given back and the job waits for its next
-- tick (or is done, where there is none); what waited for the run (after_current: cancel, pause) takes effect then.
-- A row is settled once: the occurrence as it was claimed is part of the fence. Sent again after an answer that never
-- came, it finds the row as wanted and says so, without a second skip.
-- Index: primary key; first_at and last_at prune. (See renew_leases for the UPDATE's conditions.)
with decided as materialized (
    select *
    from json_to_recordset(%(rows)s::json) as d (
        id uuid, next_run_at timestamptz, lease_generation bigint, release boolean, done boolean, restart boolean,
        following timestamptz,
        old_scheduled_for timestamptz, old_cause text, scheduled_for timestamptz, cause text, kept timestamptz[],
        skip_first timestamptz, skip_last timestamptz, skip_count bigint, skip_reason text)),
held as materialized (
    select d.*
    from decided d
    cross join lateral (
        select 1
        from jobs k
        where k.id = d.id and k.next_run_at = d.next_run_at
          and k.next_run_at >= %(first_at)s and k.next_run_at <= %(last_at)s
          and k.state is not distinct from 'claimed'
          and k.lease_generation is not distinct from d.lease_generation
          and k.lease_owner is not distinct from %(owner)s
          and k.scheduled_for = d.old_scheduled_for and k.cause = d.old_cause
        for update
        offset 0) as j),
settled as (
    update jobs j
    set scheduled_for = held.scheduled_for,
        cause = held.cause,
        kept = held.kept,
        state = case
            when held.release and j.after_current ? 'cancel' then 'cancelled'
            when held.done then 'done'
            when held.release and j.after_current ? 'pause' then 'paused'
            when held.release then 'due'
            else 'claimed' end,
        next_run_at = case
            when held.done or held.release and j.after_current ? 'cancel' then clock_timestamp()
            when held.release and j.after_current ? 'pause' then timestamptz '9500-01-01 00:00:00+00'
            when held.release then greatest(held.following, clock_timestamp())
            else j.next_run_at end,
        attempt = case when held.release then 0 when held.restart then 1 else j.attempt end,
        occurrences = case
            when held.release then greatest(j.occurrences - 1, 0) when held.restart then j.occurrences + 1
            else j.occurrences end,
        decided_until = case when held.restart then j.claimed_at else j.decided_until end,
        cancel_requested = j.cancel_requested and not held.release,
        after_current = case
            when held.release then nullif(j.after_current - 'pause' - 'cancel', '{}') else j.after_current end,
        pause_reason = case when held.release then j.after_current #>> '{pause,reason}' end,
        paused_by = case when held.release then j.after_current #>> '{pause,by}' end,
        lease_owner = case when held.release then null else j.lease_owner end,
        lease_until = case when held.release then null else j.lease_until end,
        claimed_at = case when held.release then null else j.claimed_at end
    from held
    where j.id between held.id and held.id and j.next_run_at = held.next_run_at
      and (j.next_run_at > %(first_at)s and j.next_run_at < %(last_at)s or j.next_run_at in (%(first_at)s, %(last_at)s))
    returning j.id, j.lease_generation),
skipped as (
    insert into skips (job_id, decided_at, first, last, count, reason)
    select held.id, clock_timestamp(), held.skip_first, held.skip_last, held.skip_count, held.skip_reason
    from held
    where held.skip_count > 0)
select settled.id, settled.lease_generation from settled
union all
select d.id, d.lease_generation
from decided d
cross join lateral (
    select 1
    from jobs k
    where k.id = d.id and k.next_run_at = d.next_run_at
      and k.next_run_at >= %(first_at)s and k.next_run_at <= %(last_at)s
      and k.state is not distinct from 'claimed'
      and k.lease_generation is not distinct from d.lease_generation
      and k.lease_owner is not distinct from %(owner)s
      and k.scheduled_for = d.scheduled_for and k.cause = d.cause
    offset 0) as landed
where not d.release
