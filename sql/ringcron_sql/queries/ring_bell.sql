-- Ring the bell, in a transaction of its own: a NOTIFY inside a commit takes a global lock.
select pg_notify('ringcron_bell', %(message)s)
