-- How many runs were claimed at or after an instant. since prunes; the days that are left are read whole.
select count(*) from runs where claimed_at >= %(since)s
