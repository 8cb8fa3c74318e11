-- On a standby: become a server that takes writes, on a timeline of its own.
select pg_promote(wait => false)
