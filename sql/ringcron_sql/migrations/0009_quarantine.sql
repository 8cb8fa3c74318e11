-- Quarantine begins with the second loss in a row: the first is mostly that of a machine, and a whole worker's jobs would
-- run again one by one.
drop index jobs_quarantined;
create index jobs_quarantined on jobs (next_run_at) where state = 'due' and lost > 1;
