"""How often a key may call: a token bucket, pure given the time.

Invariant: over any stretch of t seconds at most burst + t · rate calls are let through by one bucket. Buckets live in
this process: with n API processes a key has up to n times its rate.
"""

from __future__ import annotations


class TokenBucket:
    """`rate_per_second` tokens flow in, up to `burst`; each call takes one."""

    def __init__(self, rate_per_second: float, burst: int, now: float) -> None:
        """It begins full. `now`: elapsed seconds."""
        self.rate_per_second = rate_per_second
        self.burst = burst
        self._tokens = float(burst)
        self._filled_at = now

    def take(self, now: float) -> float:
        """0.0 where the call may go on; else the seconds until one may, and nothing is taken."""
        self._tokens = min(self.burst, self._tokens + (now - self._filled_at) * self.rate_per_second)
        self._filled_at = now
        if self._tokens < 1.0:
            return (1.0 - self._tokens) / self.rate_per_second
        self._tokens -= 1.0
        return 0.0
