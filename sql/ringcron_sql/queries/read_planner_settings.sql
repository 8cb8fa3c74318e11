-- What the planner of this session is told, and by which role. A view of the server's own, no table of ours.
select name, setting, quote_ident(current_user) as role
  from pg_settings
 where name = any(%(names)s)
