-- Who follows this server, and how: streaming or still catching up; sync or async.
select state, sync_state from pg_stat_replication where application_name = 'walreceiver'
