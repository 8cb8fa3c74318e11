"""ZooKeeper, and nothing else: the one place that knows kazoo (with the coordinator's election).

    Session        one session: calls with a deadline, and proof that it lives
    Registration   our own ephemeral node under `workers`
    Tree           the assignment and the members, read with watches that are only hints

    <chroot>/workers/<worker id>   ephemeral, one per worker: its name, capacity, handlers, version, acknowledged epoch
            /leader/…              one ephemeral node per coordinator; the lowest leads
            /assignment            the whole assignment

Invariants: ZooKeeper's server is authoritative for who is alive. kazoo's threads touch nothing of ours: they only hand
over to the event loop. Nothing here blocks the event loop. Losing ZooKeeper never stops a due job.
"""

from ringcron.membership.registration import Registration
from ringcron.membership.session import PROOF_SHARE, Session
from ringcron.membership.tree import Published, Stored, Tree

__all__ = ["PROOF_SHARE", "Published", "Registration", "Session", "Stored", "Tree"]
