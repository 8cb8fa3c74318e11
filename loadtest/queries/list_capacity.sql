-- The workers that reported lately, do not drain and have a handler: name, capacity. The table is small.
select w.name, w.capacity
from workers w
where w.seen_at >= now() - interval '15 seconds' and not w.draining and %(handler)s = any (w.handlers)
