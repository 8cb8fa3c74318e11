"""The load test: what ringcron does under load, measured by its user on the user's machine.

    python -m loadtest spike --jobs 2000 --workers 20 --job-seconds 5

Invariant: a run counts what went wrong (a job started twice, early or never) before it tells how fast it was, and ends
with a non-zero exit code if anything did. Instants are the database's: its clock decides when a job was due, and the
starts that handlers write down are carried over to it.

Nothing of ringcron imports this package, and it is not in the wheel: it runs from a checkout.
"""
