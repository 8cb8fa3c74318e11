-- The assignments last published, the newest first. Index: primary key of epochs, backwards.
select e.epoch, e.at, e.cause, e.leader, e.members, e.slots_moved, e.slots_unowned, e.in_transit::text
from epochs e
order by e.epoch desc
limit %(limit)s
