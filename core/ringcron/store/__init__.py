"""PostgreSQL, as ringcron uses it. The only package that imports psycopg (with `ringcron_sql.migrate`).

Invariant: every statement on `jobs` is a file of `ringcron_sql`; every write of a run carries the fence; and one
place, `ringcron.store.connection.transact`, decides what is tried again.
"""
