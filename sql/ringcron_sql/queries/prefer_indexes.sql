-- For this transaction: find jobs through their indexes, whatever old statistics say.
select set_config('enable_seqscan', 'off', true)
