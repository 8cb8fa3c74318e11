-- Dead jobs by handler and by what their reasons have in common; the `most` newest are looked at. updated_at is when they died.
-- Index: jobs_set_aside of the far partition, backwards.
select g.handler, g.fingerprint, count(*) as jobs, min(g.updated_at) as first_at, max(g.updated_at) as last_at,
       (array_agg(g.dead_reason order by g.id desc))[1] as example, (array_agg(g.id order by g.id desc))[1] as example_id
from (
    select j.id, j.handler, j.updated_at, j.dead_reason, error_fingerprint(j.handler, j.dead_reason) as fingerprint
    from jobs j
    where j.state = 'dead'
      and j.next_run_at = timestamptz '9500-01-01 00:00:00+00'
      and (%(handler)s::text is null or j.handler = %(handler)s)
    order by j.id desc
    limit %(most)s) as g
group by g.handler, g.fingerprint
order by jobs desc, last_at desc
limit %(groups)s
