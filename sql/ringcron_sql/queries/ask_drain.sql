-- Ask a worker to drain; it is told when it next reports. Index: primary key of workers.
update workers w set drain_asked_by = %(by)s
where w.worker_id = %(worker_id)s and w.seen_at >= now() - make_interval(secs => %(seen_within)s)
returning w.worker_id
