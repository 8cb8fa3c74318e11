-- What autovacuum would do some minutes after a bulk load, done at once; statistics have been made by then.
vacuum jobs
