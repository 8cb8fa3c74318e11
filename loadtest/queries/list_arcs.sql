-- The arcs that each worker reported for a handler, one row an arc: name, lo, hi. The table `workers` is small.
select w.name, (arc ->> 0)::int, (arc ->> 1)::int
from workers w, jsonb_array_elements(w.slices) as slice, jsonb_array_elements(slice -> 'arcs') as arc
where w.seen_at >= now() - interval '15 seconds' and slice -> 'handlers' ? %(handler)s
