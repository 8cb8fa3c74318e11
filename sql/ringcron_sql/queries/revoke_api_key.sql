-- Revoke an API key, once. Answers with its name and when it was revoked; no row: there is no such key. Index: primary key.
update api_keys
set revoked_at = coalesce(revoked_at, clock_timestamp())
where id = %(id)s
returning name, revoked_at
