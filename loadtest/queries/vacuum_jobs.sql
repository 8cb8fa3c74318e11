-- What autovacuum would do some minutes after a bulk load, done at once.
vacuum (analyze) jobs
