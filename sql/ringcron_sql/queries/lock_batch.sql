-- Wait for an earlier, unanswered try of the same chunk of a batch; held to the end of the transaction. No index.
select pg_advisory_xact_lock(%(token)s)
