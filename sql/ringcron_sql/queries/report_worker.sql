-- What a worker says of itself, for people. Index: primary key of workers.
insert into workers (worker_id, name, capacity, running, handlers, version, tzdata, epoch, draining, slices, seen_at)
values (%(worker_id)s, %(name)s, %(capacity)s, %(running)s, %(handlers)s, %(version)s, %(tzdata)s, %(epoch)s,
        %(draining)s, %(slices)s, clock_timestamp())
on conflict (worker_id) do update
set capacity = excluded.capacity, running = excluded.running, epoch = excluded.epoch, draining = excluded.draining,
    handlers = excluded.handlers, slices = excluded.slices, seen_at = excluded.seen_at
