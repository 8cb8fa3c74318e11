-- Workers that reported within %(seen_within)s seconds, by id. limit null: all of them.
-- Index: primary key of workers; the table is small.
select w.worker_id, w.name, w.capacity, w.running, w.handlers, w.version, w.tzdata, w.epoch, w.draining, w.slices
from workers w
where w.worker_id > %(after)s
  and w.seen_at >= now() - make_interval(secs => %(seen_within)s)
order by w.worker_id
limit %(limit)s
