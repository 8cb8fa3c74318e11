-- The newest change that is noted; 0 where there is none. Index: primary key.
select coalesce(max(seq), 0) from chaos_audit
