"""What runs in a handler process: a process of its own for plain functions, commands and quarantined jobs.

    python -m ringcron_shard_worker.handler_process WORKER_PID SOCKET

Invariants: one run at a time; the process dies with its worker (parent-death signal, and the end of the socket); it
leads a session of its own, so that whatever a run starts can be ended with it. It says after each run whether the run
left threads or processes behind; the worker then ends the process instead of using it again. The worker is
authoritative: it decides what a run's end means. Kept light: no structlog or aiohttp unless a handler needs them.
"""
