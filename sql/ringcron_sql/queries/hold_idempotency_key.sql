-- Take a key, or take it over where its answer is too old; no row where another request holds it or has answered. Waits
-- for the end of a transaction that holds it. The lock is kept to the end of this one. Index: primary key.
insert into idempotency_keys as k (id, fingerprint, created_at)
values (%(id)s, %(fingerprint)s, clock_timestamp())
on conflict (id) do update set
    fingerprint = excluded.fingerprint, created_at = excluded.created_at, status = null, headers = null, body = null
where k.created_at <= now() - make_interval(secs => %(kept_seconds)s)
returning id
