-- Note that an API key was used, at most once a minute whatever the number of API processes. Index: primary key.
update api_keys
set last_used_at = clock_timestamp()
where id = %(id)s and (last_used_at is null or last_used_at < clock_timestamp() - interval '1 minute')
