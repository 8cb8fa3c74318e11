-- API keys, the oldest first: the live ones, or all. A small table, read from end to end.
select id, name, secret_hash, scope, rate_per_second, burst, created_at, last_used_at, revoked_at
from api_keys
where revoked_at is null or not %(live_only)s
order by created_at, id
