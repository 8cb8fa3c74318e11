-- For this transaction: look for live jobs in an old day through the partial indexes, whatever old statistics say.
select set_config('enable_seqscan', 'off', true)
