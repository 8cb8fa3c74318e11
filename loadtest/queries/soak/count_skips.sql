-- How many ticks were skipped since an instant. since prunes.
select coalesce(sum(s.count), 0)::bigint from skips s where s.decided_at >= %(since)s
