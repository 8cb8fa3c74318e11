-- What each session of a worker that has a statement in hand waits for now; 'CPU' for one that does not wait.
-- A session that waits for its client has nothing in hand.
select coalesce(a.wait_event_type || ': ' || a.wait_event, 'CPU') as wait, count(*)
from pg_stat_activity a
where a.datname = current_database() and a.backend_type = 'client backend' and a.state = 'active'
  and a.application_name like any (%(names)s::text[])
group by wait
