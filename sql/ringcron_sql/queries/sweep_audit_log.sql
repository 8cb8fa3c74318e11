-- Delete up to 1,000 audit entries that are older than the bound, the oldest first. Index: audit_log_by_time; primary key.
with swept as (
    delete from audit_log
    where id in (select id from audit_log where at < %(before)s order by at limit 1000)
    returning id)
select count(*) from swept
