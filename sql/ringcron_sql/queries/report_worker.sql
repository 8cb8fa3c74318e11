-- What a worker says of itself, for people; answers with who asked it to drain. Index: primary key of workers.
insert into workers (worker_id, name, capacity, running, handlers, version, tzdata, epoch, draining, slices,
                     report_seconds, mean_seconds, seen_at)
values (%(worker_id)s, %(name)s, %(capacity)s, %(running)s, %(handlers)s, %(version)s, %(tzdata)s, %(epoch)s,
        %(draining)s, %(slices)s, %(report_seconds)s, %(mean_seconds)s, clock_timestamp())
on conflict (worker_id) do update
set capacity = excluded.capacity, running = excluded.running, epoch = excluded.epoch, draining = excluded.draining,
    handlers = excluded.handlers, slices = excluded.slices, report_seconds = excluded.report_seconds,
    mean_seconds = excluded.mean_seconds, seen_at = excluded.seen_at
returning drain_asked_by
