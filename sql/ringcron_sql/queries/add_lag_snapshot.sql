-- Begin: an old, empty snapshot, where a crash of the database or a new installation left none.
insert into lag_snapshot (taken_at, document)
values (timestamptz '2000-01-01 00:00:00+00', '')
on conflict (one) do nothing
