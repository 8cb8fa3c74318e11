-- Become the one that writes the lag of the moment anew; no row where it is young or somebody else is at it.
-- Index: primary key; one row.
select s.document
from lag_snapshot s
where s.taken_at <= clock_timestamp() - make_interval(secs => %(age)s)
for update skip locked
