-- Every job by its name, which a chaos run makes unique: id, creation, state. The tables of a chaos run are small.
select name, id::text as job, extract(epoch from created_at)::float8 as created_at, state
from jobs
where name is not null
