-- Send autovacuum away from a partition and keep it away to the end of this transaction. Stops no traffic.
lock table only {partition} in share update exclusive mode
