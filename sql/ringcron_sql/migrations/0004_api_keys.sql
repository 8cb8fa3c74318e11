-- Who may call the API (api_keys), and what callers did to jobs (audit_log). No worker reads or writes either.

create table api_keys (
    id              text        primary key,
    name            text        not null check (char_length(name) between 1 and 100),
    secret_hash     bytea       not null check (octet_length(secret_hash) = 32),  -- SHA-256; the secret is nowhere
    scope           text        not null check (scope in ('read', 'write', 'admin')),
    rate_per_second double precision check (rate_per_second between 0.001 and 1000000),  -- null: no limit
    burst           integer     check (burst between 1 and 1000000),
    created_at      timestamptz not null,
    last_used_at    timestamptz,            -- at most a minute old while the key is in use
    revoked_at      timestamptz,
    constraint burst_iff_limited check ((rate_per_second is null) = (burst is null))
);
-- people know keys by their names, so that no two live ones share one
create unique index api_keys_live on api_keys (name) where revoked_at is null;

-- Written in the transaction of the change that it tells of. Upkeep deletes what is older than runs are kept.
create table audit_log (
    id         bigint      generated always as identity primary key,
    at         timestamptz not null default clock_timestamp(),
    action     text        not null,
    job_id     uuid,                        -- null: of many jobs; `detail` says which
    key_id     text,                        -- null: no key was needed
    key_name   text,
    request_id text,
    detail     jsonb
);
create index audit_log_by_job on audit_log (job_id, id);
create index audit_log_by_time on audit_log (at);
