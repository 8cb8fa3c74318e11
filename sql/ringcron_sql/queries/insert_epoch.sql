-- Note an assignment that was published, and forget those of long ago. Index: primary key of epochs.
with forgotten as (delete from epochs e where e.epoch <= %(epoch)s - %(kept)s)
insert into epochs (epoch, cause, leader, members, slots_moved, slots_unowned, in_transit)
values (%(epoch)s, %(cause)s, %(leader)s, %(members)s, %(slots_moved)s, %(slots_unowned)s, %(in_transit)s::text::jsonb)
on conflict (epoch) do nothing
