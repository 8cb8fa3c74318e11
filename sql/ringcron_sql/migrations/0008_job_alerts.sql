-- Alerts for one job: late by so much, or no success for so long. Only jobs that have one are looked at.
alter table jobs
    add column alert_after_late_seconds double precision,
    add column alert_if_no_success_seconds double precision;

create table job_alerts (
    job_id            uuid        primary key,
    since             timestamptz not null,  -- its creation, or the end of the last success that was seen
    look_at           timestamptz not null,  -- nothing can be wrong before it; written at each look
    late_since        timestamptz,           -- null: it is not late
    no_success_since  timestamptz,           -- null: it succeeds often enough
    told_late         timestamptz,           -- the late_since that was told last; null: told that it is over, or nothing
    told_no_success   timestamptz
);
create index job_alerts_by_look on job_alerts (look_at);
create index job_alerts_breached on job_alerts (job_id)
    where late_since is not null or no_success_since is not null or told_late is not null or told_no_success is not null;
