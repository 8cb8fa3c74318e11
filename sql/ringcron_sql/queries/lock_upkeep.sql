-- One upkeep at a time, to the end of this transaction; false where another is at work. "ring" in ASCII, and 2.
select pg_try_advisory_xact_lock(1919512167, 2)
