-- One migrator at a time: wait for the other, to the end of this transaction. The keys are "ring" in ASCII, and 1.
select pg_advisory_xact_lock(1919512167, 1)
