-- The schedule (jobs), what became of it (runs, skips), and the small tables beside them.
--
-- jobs is range-partitioned by next_run_at in UTC days between jobs_past and jobs_far; runs and skips likewise, by
-- claim and decision time. No DEFAULT partition anywhere: it would block polls while a day is attached.
-- Days are carved out of the far partition by the coordinator's upkeep; if upkeep stops, rows lie in far and are found.

create table jobs (
    id               uuid        not null,
    next_run_at      timestamptz not null,  -- the earliest next claim; 9500-01-01 while parked; when it ended, after that
    slot             smallint    not null check (slot between 0 and 4095),
    state            text        not null check (state in ('due', 'claimed', 'paused', 'done', 'cancelled', 'dead')),
    handler          text        not null,
    -- the occurrence
    scheduled_for    timestamptz not null,
    cause            text        not null default 'schedule'
                                 check (cause in ('schedule', 'catchup', 'buffer', 'manual', 'redrive')),
    attempt          integer     not null default 0 check (attempt >= 0),
    lost             integer     not null default 0 check (lost >= 0),         -- losses in a row; > 0: quarantined
    occurrences      integer     not null default 0 check (occurrences >= 0),  -- from the schedule, claimed at least once
    decided_until    timestamptz not null,  -- every tick up to it was run, kept or skipped
    kept             timestamptz[],         -- ticks that wait their turn, oldest first
    -- the lease
    lease_generation bigint      not null default 0,
    lease_owner      text,
    lease_until      timestamptz,
    claimed_at       timestamptz,
    cancel_requested boolean     not null default false,
    after_current    jsonb,                 -- pause, patch, trigger, cancel that wait for the run
    -- the definition
    revision         integer     not null default 1,
    schedule         jsonb,                 -- null: a one-off
    run_at           timestamptz,
    payload          jsonb       not null,
    key              text,
    name             text,
    tags             text[]      not null default '{}',
    max_attempts     integer     not null default 5,
    min_backoff_seconds double precision not null default 5,
    max_backoff_seconds double precision not null default 3600,
    backoff_multiplier  double precision not null default 2,
    max_lost         integer     not null default 3,
    timeout_seconds  double precision,
    overlap          text        not null default 'skip'
                                 check (overlap in ('skip', 'buffer_one', 'buffer_all', 'cancel_other')),
    catchup          text        not null default 'latest' check (catchup in ('latest', 'all', 'none')),
    catchup_window_seconds double precision not null default 31536000,
    jitter_seconds   double precision not null default 0,
    on_exhausted     text        not null default 'continue' check (on_exhausted in ('continue', 'dead')),
    tzdata           text,                  -- version of the zone rules that chose next_run_at
    pause_reason     text,
    paused_by        text,
    dead_reason      text,
    created_at       timestamptz not null,
    updated_at       timestamptz not null,
    primary key (id, next_run_at),
    constraint one_kind check ((schedule is null) <> (run_at is null)),
    constraint lease_iff_claimed check (
        (state = 'claimed') = (lease_owner is not null)
        and (lease_owner is null) = (lease_until is null)
        and (lease_owner is null) = (claimed_at is null)),
    constraint parked_iff_waiting_for_a_person check (
        (state in ('paused', 'dead')) = (next_run_at = timestamptz '9500-01-01 00:00:00+00')),
    -- one infinity would poison every read that meets it
    constraint readable_instants check (
        next_run_at >= timestamptz '2000-01-01 00:00:00+00' and next_run_at <= timestamptz '9500-01-01 00:00:00+00'
        and scheduled_for >= timestamptz '1990-01-01 00:00:00+00' and scheduled_for < timestamptz '9500-01-01 00:00:00+00'
        and decided_until >= timestamptz '1990-01-01 00:00:00+00' and decided_until < timestamptz '9500-01-01 00:00:00+00'
        and (run_at is null or run_at >= timestamptz '1990-01-01 00:00:00+00' and run_at < timestamptz '9500-01-01 00:00:00+00'))
) partition by range (next_run_at);

-- claim, peek, lag: the due rows of a handler in time order; the slot is tested inside the index
create index jobs_due on jobs (handler, next_run_at, slot) where state = 'due';
-- quarantined rows are few and are claimed alone
create index jobs_quarantined on jobs (next_run_at) where state = 'due' and lost > 0;
-- reap, lease peek, hand-back
create index jobs_claimed on jobs (lease_until) where state = 'claimed';

-- The record of each attempt, written once: at its end, or by the reaper.
create table runs (
    job_id           uuid        not null,
    lease_generation bigint      not null,
    claimed_at       timestamptz not null,
    attempt          integer     not null,
    scheduled_for    timestamptz not null,
    cause            text        not null,
    worker_id        text        not null,
    started_at       timestamptz not null,
    finished_at      timestamptz not null,
    outcome          text        not null check (outcome in
                         ('succeeded', 'failed', 'timed_out', 'cancelled', 'lost', 'interrupted')),
    error            text,
    result           jsonb,
    primary key (job_id, lease_generation, claimed_at)
) partition by range (claimed_at);

-- Ticks deliberately not run: `count` ticks of the job's schedule from first to last, both included.
create table skips (
    job_id     uuid        not null,
    decided_at timestamptz not null,
    first      timestamptz not null,
    last       timestamptz not null,
    count      bigint      not null check (count > 0),
    reason     text        not null check (reason in ('overlap', 'missed', 'paused', 'dead', 'rescheduled')),
    primary key (job_id, first, decided_at)
) partition by range (decided_at);

do $$
declare
    today timestamptz := date_trunc('day', now() at time zone 'utc') at time zone 'utc';
    parent text;
begin
    foreach parent in array array['jobs', 'runs', 'skips'] loop
        execute format('create table %I partition of %I for values from (minvalue) to (%L)', parent || '_past', parent, today);
        execute format('create table %I partition of %I for values from (%L) to (maxvalue)', parent || '_far', parent, today);
    end loop;
end $$;

-- Unpartitioned, untouched by the hot path: a conflict with a job that is gone re-points the key.
create table job_keys (
    key    text primary key,
    job_id uuid not null
);

create table job_tags (
    tag    text not null,
    job_id uuid not null,
    primary key (tag, job_id)
);
create index job_tags_by_job on job_tags (job_id);

-- What workers say of themselves, for people. Unlogged: emptied by a crash of the database, refilled within seconds.
create unlogged table workers (
    worker_id text primary key,
    name      text        not null,
    capacity  integer     not null,
    running   integer     not null,
    handlers  text[]      not null,
    version   text        not null,
    tzdata    text        not null,
    epoch     bigint      not null,
    draining  boolean     not null,
    slices    jsonb       not null,  -- [{"handlers": […], "arcs": [[lo, hi], …]}, …]
    seen_at   timestamptz not null
);
