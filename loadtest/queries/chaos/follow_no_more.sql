-- From the next reload on no commit waits for a standby.
alter system reset synchronous_standby_names
