"""Real servers on this machine, for `./dev up` and for the tests: PostgreSQL, ZooKeeper and the programs of ringcron.

Invariants: a child never outlives its parent (a parent-death signal, set before the program starts); nothing listens
on anything but loopback; PostgreSQL never trusts a connection without the password; nothing outside the folders that
are given is written, but for the cache of downloaded jars. The operating system is authoritative for what runs; these
objects only remember what they started. Nothing here is imported by the API, a worker or a coordinator.
"""
