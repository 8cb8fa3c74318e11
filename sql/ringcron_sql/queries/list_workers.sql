-- Workers that reported within %(seen_within)s seconds, by id. limit null: all of them.
-- Index: primary key of workers; the table is small.
select w.worker_id, w.name, w.capacity, w.running, w.handlers, w.version, w.tzdata, w.epoch, w.draining, w.slices,
       w.report_seconds, w.drain_asked_by, w.mean_seconds, extract(epoch from clock_timestamp() - w.seen_at)::float8 as age_seconds
from workers w
where w.worker_id > %(after)s
  and w.seen_at >= now() - make_interval(secs => %(seen_within)s)
order by w.worker_id
limit %(limit)s
