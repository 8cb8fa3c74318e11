"""What can go wrong with servers on this machine."""

from __future__ import annotations

from ringcron.errors import RingcronError


class LocalServerError(RingcronError):
    """A server on this machine cannot be started."""


class NotAvailable(LocalServerError):
    """This machine has no such program, and none can be had."""
