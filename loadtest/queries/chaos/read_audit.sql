-- Every change, in order. Index: primary key.
select seq, extract(epoch from at)::float8 as at, txid::text as txid, change, job::text as job, state, generation,
       owner, extract(epoch from lease_until)::float8 as lease_until,
       extract(epoch from next_run_at)::float8 as next_run_at,
       extract(epoch from scheduled_for)::float8 as scheduled_for, cause, attempt, slot, writer
from chaos_audit
order by seq
