-- How long runs last, as each worker measures it: what the forecast and the autoscale number are made of.
alter table workers
    add column mean_seconds jsonb not null default '{}';  -- {handler: seconds}, of the runs that ended lately
