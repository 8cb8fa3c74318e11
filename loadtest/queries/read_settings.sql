-- Settings of the server, as they are in effect. The view reads no table.
select name, current_setting(name) from pg_settings where name = any (%(names)s) order by name
