-- Workers that went without a word within the last %(within)s seconds, the latest first; of each name the last one, and
-- none where another one of that name has reported since. Index: primary key of workers; the table is small.
select w.worker_id, w.name, w.seen_at, w.slices
from workers w
where w.seen_at < now() - make_interval(secs => %(seen_within)s)
  and w.seen_at >= now() - make_interval(secs => %(within)s)
  and not exists (select from workers later where later.name = w.name and later.seen_at > w.seen_at)
order by w.seen_at desc
limit %(limit)s
