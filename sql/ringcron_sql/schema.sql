-- The schema at the newest migration, for reading; the migrations make it, this file never runs.
-- Do not edit. Written by: RINGCRON_REFRESH_SCHEMA=1 .venv/bin/pytest tests/integration/test_schema_drift.py
-- Only the first and the last partition of each table are here: upkeep makes the days between them.

create table api_keys (
    id text not null,
    name text not null,
    secret_hash bytea not null,
    scope text not null,
    rate_per_second double precision,
    burst integer,
    created_at timestamp with time zone not null,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    constraint api_keys_pkey PRIMARY KEY (id),
    constraint api_keys_burst_check CHECK (((burst >= 1) AND (burst <= 1000000))),
    constraint api_keys_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100))),
    constraint api_keys_rate_per_second_check CHECK (((rate_per_second >= (0.001)::double precision) AND (rate_per_second <= (1000000)::double precision))),
    constraint api_keys_scope_check CHECK ((scope = ANY (ARRAY['read'::text, 'write'::text, 'admin'::text]))),
    constraint api_keys_secret_hash_check CHECK ((octet_length(secret_hash) = 32)),
    constraint burst_iff_limited CHECK (((rate_per_second IS NULL) = (burst IS NULL)))
);
CREATE UNIQUE INDEX api_keys_live ON api_keys USING btree (name) WHERE (revoked_at IS NULL);

create table audit_log (
    id bigint generated always as identity not null,
    at timestamp with time zone default clock_timestamp() not null,
    action text not null,
    job_id uuid,
    key_id text,
    key_name text,
    request_id text,
    detail jsonb,
    constraint audit_log_pkey PRIMARY KEY (id)
);
CREATE INDEX audit_log_by_job ON audit_log USING btree (job_id, id);
CREATE INDEX audit_log_by_time ON audit_log USING btree (at);

create table epochs (
    epoch bigint not null,
    at timestamp with time zone default clock_timestamp() not null,
    cause text not null,
    leader text not null,
    members integer not null,
    slots_moved integer not null,
    slots_unowned integer not null,
    in_transit jsonb not null,
    constraint epochs_pkey PRIMARY KEY (epoch)
);

create table idempotency_keys (
    id bytea not null,
    fingerprint bytea not null,
    created_at timestamp with time zone not null,
    status smallint,
    headers jsonb,
    body bytea,
    constraint idempotency_keys_pkey PRIMARY KEY (id)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys USING btree (created_at);

create table job_alerts (
    job_id uuid not null,
    since timestamp with time zone not null,
    look_at timestamp with time zone not null,
    late_since timestamp with time zone,
    no_success_since timestamp with time zone,
    told_late timestamp with time zone,
    told_no_success timestamp with time zone,
    constraint job_alerts_pkey PRIMARY KEY (job_id)
);
CREATE INDEX job_alerts_breached ON job_alerts USING btree (job_id) WHERE ((late_since IS NOT NULL) OR (no_success_since IS NOT NULL) OR (told_late IS NOT NULL) OR (told_no_success IS NOT NULL));
CREATE INDEX job_alerts_by_look ON job_alerts USING btree (look_at);

create table job_keys (
    key text not null,
    job_id uuid not null,
    constraint job_keys_pkey PRIMARY KEY (key)
);
CREATE INDEX job_keys_by_job ON job_keys USING btree (job_id);

create table job_tags (
    tag text not null,
    job_id uuid not null,
    constraint job_tags_pkey PRIMARY KEY (tag, job_id)
);
CREATE INDEX job_tags_by_job ON job_tags USING btree (job_id);

create table jobs (
    id uuid not null,
    next_run_at timestamp with time zone not null,
    slot smallint not null,
    state text not null,
    handler text not null,
    scheduled_for timestamp with time zone not null,
    cause text default 'schedule'::text not null,
    attempt integer default 0 not null,
    lost integer default 0 not null,
    occurrences integer default 0 not null,
    decided_until timestamp with time zone not null,
    kept timestamp with time zone[],
    lease_generation bigint default 0 not null,
    lease_owner text,
    lease_until timestamp with time zone,
    claimed_at timestamp with time zone,
    cancel_requested boolean default false not null,
    after_current jsonb,
    revision integer default 1 not null,
    schedule jsonb,
    run_at timestamp with time zone,
    payload jsonb not null,
    key text,
    name text,
    tags text[] default '{}'::text[] not null,
    max_attempts integer default 5 not null,
    min_backoff_seconds double precision default 5 not null,
    max_backoff_seconds double precision default 3600 not null,
    backoff_multiplier double precision default 2 not null,
    max_lost integer default 3 not null,
    timeout_seconds double precision,
    overlap text default 'skip'::text not null,
    catchup text default 'latest'::text not null,
    catchup_window_seconds double precision default 31536000 not null,
    jitter_seconds double precision default 0 not null,
    on_exhausted text default 'continue'::text not null,
    tzdata text,
    pause_reason text,
    paused_by text,
    dead_reason text,
    created_at timestamp with time zone not null,
    updated_at timestamp with time zone not null,
    traceparent text,
    alert_after_late_seconds double precision,
    alert_if_no_success_seconds double precision,
    tracestate text,
    constraint jobs_pkey PRIMARY KEY (id, next_run_at),
    constraint jobs_attempt_check CHECK ((attempt >= 0)),
    constraint jobs_catchup_check CHECK ((catchup = ANY (ARRAY['latest'::text, 'all'::text, 'none'::text]))),
    constraint jobs_cause_check CHECK ((cause = ANY (ARRAY['schedule'::text, 'catchup'::text, 'buffer'::text, 'manual'::text, 'redrive'::text]))),
    constraint jobs_lost_check CHECK ((lost >= 0)),
    constraint jobs_occurrences_check CHECK ((occurrences >= 0)),
    constraint jobs_on_exhausted_check CHECK ((on_exhausted = ANY (ARRAY['continue'::text, 'dead'::text]))),
    constraint jobs_overlap_check CHECK ((overlap = ANY (ARRAY['skip'::text, 'buffer_one'::text, 'buffer_all'::text, 'cancel_other'::text]))),
    constraint jobs_slot_check CHECK (((slot >= 0) AND (slot <= 4095))),
    constraint jobs_state_check CHECK ((state = ANY (ARRAY['due'::text, 'claimed'::text, 'paused'::text, 'done'::text, 'cancelled'::text, 'dead'::text]))),
    constraint lease_iff_claimed CHECK ((((state = 'claimed'::text) = (lease_owner IS NOT NULL)) AND ((lease_owner IS NULL) = (lease_until IS NULL)) AND ((lease_owner IS NULL) = (claimed_at IS NULL)))),
    constraint one_kind CHECK (((schedule IS NULL) <> (run_at IS NULL))),
    constraint parked_iff_waiting_for_a_person CHECK (((state = ANY (ARRAY['paused'::text, 'dead'::text])) = (next_run_at = '9500-01-01 00:00:00+00'::timestamp with time zone))),
    constraint readable_instants CHECK (((next_run_at >= '2000-01-01 00:00:00+00'::timestamp with time zone) AND (next_run_at <= '9500-01-01 00:00:00+00'::timestamp with time zone) AND (scheduled_for >= '1990-01-01 00:00:00+00'::timestamp with time zone) AND (scheduled_for < '9500-01-01 00:00:00+00'::timestamp with time zone) AND (decided_until >= '1990-01-01 00:00:00+00'::timestamp with time zone) AND (decided_until < '9500-01-01 00:00:00+00'::timestamp with time zone) AND ((run_at IS NULL) OR ((run_at >= '1990-01-01 00:00:00+00'::timestamp with time zone) AND (run_at < '9500-01-01 00:00:00+00'::timestamp with time zone)))))
) partition by RANGE (next_run_at);
CREATE INDEX jobs_claimed ON jobs USING btree (lease_until) WHERE (state = 'claimed'::text);
CREATE INDEX jobs_due ON jobs USING btree (handler, next_run_at, slot) WHERE (state = 'due'::text);
CREATE INDEX jobs_named ON jobs USING btree (name, id) WHERE (name IS NOT NULL);
CREATE INDEX jobs_quarantined ON jobs USING btree (next_run_at) WHERE ((state = 'due'::text) AND (lost > 1));
CREATE INDEX jobs_set_aside ON jobs USING btree (state, id) WHERE (state = ANY (ARRAY['paused'::text, 'dead'::text, 'cancelled'::text]));
-- partition jobs_far
-- partition jobs_past

create unlogged table lag_snapshot (
    one boolean default true not null,
    taken_at timestamp with time zone not null,
    document text not null,
    constraint lag_snapshot_pkey PRIMARY KEY (one),
    constraint lag_snapshot_one_check CHECK (one)
);

create table runs (
    job_id uuid not null,
    lease_generation bigint not null,
    claimed_at timestamp with time zone not null,
    attempt integer not null,
    scheduled_for timestamp with time zone not null,
    cause text not null,
    worker_id text not null,
    started_at timestamp with time zone not null,
    finished_at timestamp with time zone not null,
    outcome text not null,
    error text,
    result jsonb,
    constraint runs_pkey PRIMARY KEY (job_id, lease_generation, claimed_at),
    constraint runs_outcome_check CHECK ((outcome = ANY (ARRAY['succeeded'::text, 'failed'::text, 'timed_out'::text, 'cancelled'::text, 'lost'::text, 'interrupted'::text])))
) partition by RANGE (claimed_at);
CREATE INDEX runs_by_claim ON runs USING brin (claimed_at) WITH (pages_per_range='32', autosummarize='on');
-- partition runs_far
-- partition runs_past

create table schema_migrations (
    version integer not null,
    name text not null,
    checksum text not null,
    applied_at timestamp with time zone default clock_timestamp() not null,
    constraint schema_migrations_pkey PRIMARY KEY (version)
);

create table skips (
    job_id uuid not null,
    decided_at timestamp with time zone not null,
    first timestamp with time zone not null,
    last timestamp with time zone not null,
    count bigint not null,
    reason text not null,
    constraint skips_pkey PRIMARY KEY (job_id, first, decided_at),
    constraint skips_count_check CHECK ((count > 0)),
    constraint skips_reason_check CHECK ((reason = ANY (ARRAY['overlap'::text, 'missed'::text, 'paused'::text, 'dead'::text, 'rescheduled'::text])))
) partition by RANGE (decided_at);
-- partition skips_far
-- partition skips_past

create unlogged table workers (
    worker_id text not null,
    name text not null,
    capacity integer not null,
    running integer not null,
    handlers text[] not null,
    version text not null,
    tzdata text not null,
    epoch bigint not null,
    draining boolean not null,
    slices jsonb not null,
    seen_at timestamp with time zone not null,
    report_seconds real default 5 not null,
    drain_asked_by text,
    mean_seconds jsonb default '{}'::jsonb not null,
    constraint workers_pkey PRIMARY KEY (worker_id)
);
