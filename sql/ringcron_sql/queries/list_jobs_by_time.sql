-- Jobs that are due or claimed, by next_run_at: a moving view. after_at and after_id are exclusive, together; the other
-- parameters as in list_jobs. No index is sorted by time over all handlers, so what lies in the bounds is sorted; the
-- caller asks for a short stretch first.
-- Index: jobs_due and jobs_claimed.
with page as (
    (select j.id, j.next_run_at
     from jobs j
     where %(due)s
       and j.state = 'due'
       and j.next_run_at >= %(from_at)s and j.next_run_at < %(until_at)s
       and (j.next_run_at, j.id) > (%(after_at)s, %(after_id)s)
       and (%(handler)s::text is null or j.handler = %(handler)s)
       and (%(name)s::text is null or j.name = %(name)s)
       and (%(tag)s::text is null or exists (select from job_tags t where t.tag = %(tag)s and t.job_id = j.id))
     order by j.next_run_at, j.id
     limit %(limit)s)
    union all
    (select j.id, j.next_run_at
     from jobs j
     where %(claimed)s
       and j.state = 'claimed'
       and j.next_run_at >= %(from_at)s and j.next_run_at < %(until_at)s
       and (j.next_run_at, j.id) > (%(after_at)s, %(after_id)s)
       and (%(handler)s::text is null or j.handler = %(handler)s)
       and (%(name)s::text is null or j.name = %(name)s)
       and (%(tag)s::text is null or exists (select from job_tags t where t.tag = %(tag)s and t.job_id = j.id))
     order by j.next_run_at, j.id
     limit %(limit)s)
    order by next_run_at, id
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
order by page.next_run_at, page.id
