-- Delete answers that are older than they are kept: the oldest, at most 1,000. Index: idempotency_keys_age.
with leaving as materialized (
    select id
    from idempotency_keys
    where created_at <= now() - make_interval(secs => %(kept_seconds)s)
    order by created_at
    limit 1000
    for update skip locked),
gone as (delete from idempotency_keys k using leaving where k.id = leaving.id returning k.id)
select count(*) from gone
