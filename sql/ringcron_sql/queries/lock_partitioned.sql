-- Stop traffic on a partitioned table. Before anything below it is locked: every statement comes through here, so once
-- this is held, nobody holds a lock further down that would have to be waited for, or that could wait for us.
lock table only {table} in access exclusive mode
