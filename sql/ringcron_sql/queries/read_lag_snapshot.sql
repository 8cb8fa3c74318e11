-- The lag of the moment, and how old it is in seconds. Index: primary key; one row.
select s.document, extract(epoch from clock_timestamp() - s.taken_at)::float8
from lag_snapshot s
