-- Take the settings that were altered.
select pg_reload_conf()
