-- Jobs that are due or claimed, newest first; parameters as in list_jobs.
-- Days before late_until_at hold many jobs that have ended and few that wait: those are looked up through jobs_due, and
-- claimed ones through jobs_claimed, all of them; due ones from near_from_at on by the primary key backwards, merged. (In
-- one scan the planner would read every ended job of the old days by id, for the sake of a low start-up cost.)
with few as materialized (
    select j.id, j.next_run_at
    from jobs j
    where %(due)s
      and j.state = 'due'
      and j.next_run_at >= %(from_at)s and j.next_run_at < %(late_until_at)s
      and j.id < %(before)s
      and (%(handler)s::text is null or j.handler = %(handler)s)
      and (%(name)s::text is null or j.name = %(name)s)
    union all
    select j.id, j.next_run_at
    from jobs j
    where %(claimed)s
      and j.state = 'claimed'
      and j.next_run_at >= %(from_at)s and j.next_run_at < %(until_at)s
      and j.id < %(before)s
      and (%(handler)s::text is null or j.handler = %(handler)s)
      and (%(name)s::text is null or j.name = %(name)s)),
page as (
    (select few.id, few.next_run_at from few order by few.id desc limit %(limit)s)
    union all
    (select j.id, j.next_run_at
     from jobs j
     where %(due)s
       and j.state = 'due'
       and j.next_run_at >= %(near_from_at)s and j.next_run_at < %(until_at)s
       and j.id < %(before)s
       and (%(handler)s::text is null or j.handler = %(handler)s)
       and (%(name)s::text is null or j.name = %(name)s)
     order by j.id desc
     limit %(limit)s)
    order by id desc
    limit %(limit)s)
select j.id, j.next_run_at, j.slot, j.state, j.handler, j.scheduled_for, j.cause, j.attempt, j.lost, j.occurrences,
       j.decided_until, j.kept, j.lease_generation, j.lease_owner, j.lease_until, j.claimed_at, j.cancel_requested,
       j.after_current::text, j.revision, j.schedule::text, j.run_at,
       case when %(with_payload)s then j.payload::text end as payload, j.key, j.name, j.tags,
       j.max_attempts, j.min_backoff_seconds, j.max_backoff_seconds, j.backoff_multiplier, j.max_lost,
       j.timeout_seconds, j.overlap, j.catchup, j.catchup_window_seconds, j.jitter_seconds, j.on_exhausted, j.tzdata,
       j.alert_after_late_seconds, j.alert_if_no_success_seconds,
       j.pause_reason, j.paused_by, j.dead_reason, j.created_at, j.updated_at
from page
cross join lateral (select * from jobs k where k.id = page.id and k.next_run_at = page.next_run_at offset 0) as j
order by page.id desc
