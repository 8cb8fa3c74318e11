-- What each worker that reported in the last `seconds` holds of the ring of a handler: name, id, epoch, slots.
-- The table `workers` is small.
select w.name, w.worker_id, w.epoch,
       (select coalesce(sum((arc ->> 1)::int - (arc ->> 0)::int + 1), 0)::int
        from jsonb_array_elements(w.slices) as slice, jsonb_array_elements(slice -> 'arcs') as arc
        where slice -> 'handlers' ? %(handler)s)
from workers w
where w.seen_at >= now() - make_interval(secs => %(seconds)s) and not w.draining and %(handler)s = any (w.handlers)
