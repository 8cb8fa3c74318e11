-- Add an API key. Answers with its id, also when the same key was added before (the statement may have been sent twice);
-- no row: a live key has that name. Index: api_keys_live; primary key.
with added as (
    insert into api_keys (id, name, secret_hash, scope, rate_per_second, burst, created_at)
    values (%(id)s, %(name)s, %(secret_hash)s, %(scope)s, %(rate_per_second)s, %(burst)s, clock_timestamp())
    on conflict do nothing
    returning id)
select id from added
union all
select id from api_keys where id = %(id)s and secret_hash = %(secret_hash)s
