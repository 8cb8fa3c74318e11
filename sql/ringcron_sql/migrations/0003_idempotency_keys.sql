-- Answers that were given to requests with an Idempotency-Key, each written in the transaction of its effect.

create table idempotency_keys (
    id          bytea       primary key,  -- SHA-256 of caller, method, path and key
    fingerprint bytea       not null,     -- SHA-256 of the request's body
    created_at  timestamptz not null,
    status      smallint,                 -- null only inside the transaction that does what was asked for
    headers     jsonb,
    body        bytea
);

-- the sweep of what is older than a day
create index idempotency_keys_age on idempotency_keys (created_at);
