-- What each worker that reported lately holds of the ring of the load test's handler: name, id, epoch, slots.
-- The table `workers` is small.
select w.name, w.worker_id, w.epoch,
       (select coalesce(sum((arc ->> 1)::int - (arc ->> 0)::int + 1), 0)::int
        from jsonb_array_elements(w.slices) as slice, jsonb_array_elements(slice -> 'arcs') as arc
        where slice -> 'handlers' ? 'loadtest')
from workers w
where w.seen_at >= now() - interval '15 seconds' and not w.draining and 'loadtest' = any (w.handlers)
