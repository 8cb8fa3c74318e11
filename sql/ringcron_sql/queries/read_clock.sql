-- The database's clock: the only one that decides what is due. No table.
select clock_timestamp()
