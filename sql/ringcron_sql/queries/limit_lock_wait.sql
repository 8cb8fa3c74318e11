-- How long the statements of this transaction wait for a lock; '0': without limit.
select set_config('lock_timeout', %(limit)s, true)
