-- Workers that went without a word within the last %(within)s seconds, the latest first. Index: primary key of workers;
-- the table is small.
select w.worker_id, w.name, w.seen_at, w.slices
from workers w
where w.seen_at < now() - make_interval(secs => %(seen_within)s)
  and w.seen_at >= now() - make_interval(secs => %(within)s)
order by w.seen_at desc
limit %(limit)s
