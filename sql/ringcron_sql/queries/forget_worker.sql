-- A worker that has left, and those that have not been seen for ten minutes. Index: primary key; the table is small.
delete from workers where worker_id = %(worker_id)s or seen_at < now() - interval '10 minutes'
