-- From the next reload on each commit waits until a standby has it on its disk.
alter system set synchronous_standby_names = '*'
