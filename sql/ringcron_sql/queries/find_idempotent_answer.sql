-- The answer that was given to this key within the time that answers are kept. Index: primary key.
select fingerprint, status, headers::text, body
from idempotency_keys
where id = %(id)s and status is not null and created_at > now() - make_interval(secs => %(kept_seconds)s)
