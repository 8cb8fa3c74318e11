-- Delete audit entries that are older than they are kept: the oldest, at most 1,000. Index: audit_log_by_time.
with leaving as materialized (
    select id
    from audit_log
    where at <= now() - make_interval(secs => %(kept_seconds)s)
    order by at
    limit 1000
    for update skip locked),
gone as (delete from audit_log a using leaving where a.id = leaving.id returning a.id)
select count(*) from gone
