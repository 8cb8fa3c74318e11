"""API keys: `rc_<id>_<secret>`, and what each may do.

Invariant: the secret exists in the text that is shown once, and nowhere else: what is kept is its SHA-256. It has 256
random bits, so a fast hash is as good as a slow one. PostgreSQL is authoritative for which keys are live.
"""

from __future__ import annotations

import hmac
import re
import secrets
import string
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Final, Self

PREFIX: Final = "rc"
ID_LENGTH: Final = 10
SECRET_BYTES: Final = 32
SECRET_LENGTH: Final = 43
"""Base62 digits that hold SECRET_BYTES."""

_DIGITS: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_FORM: Final = re.compile(rf"{PREFIX}_([0-9A-Za-z]{{{ID_LENGTH}}})_([0-9A-Za-z]{{{SECRET_LENGTH}}})", re.ASCII)


class Scope(StrEnum):
    """What a key may do. Each scope includes the ones before it."""

    READ = "read"  # look at everything
    WRITE = "write"  # create, change and cancel jobs and runs
    ADMIN = "admin"  # act on many jobs at once

    def includes(self, other: Scope) -> bool:
        order = tuple(Scope)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyText:
    """A key as its holder has it. Its repr does not show the secret."""

    id: str
    secret: str = field(repr=False)

    @classmethod
    def draw(cls) -> Self:
        """A new key."""
        key_id = "".join(secrets.choice(_DIGITS) for _ in range(ID_LENGTH))
        return cls(id=key_id, secret=_base62(secrets.token_bytes(SECRET_BYTES)))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The key in a text; None where it has not the form of one."""
        form = _FORM.fullmatch(text)
        return None if form is None else cls(id=form[1], secret=form[2])

    def reveal(self) -> str:
        """The whole text, to be shown once."""
        return f"{PREFIX}_{self.id}_{self.secret}"

    def secret_hash(self) -> bytes:
        """What is kept of the secret."""
        return sha256(self.secret.encode()).digest()


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiKey:
    """A key as it is kept. `rate_per_second` None: no limit, and no `burst`."""

    id: str
    name: str
    secret_hash: bytes = field(repr=False)
    scope: Scope
    rate_per_second: float | None
    burst: int | None
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None

    def is_opened_by(self, key: KeyText) -> bool:
        """Whether the secret is the right one, in a time that does not tell how nearly."""
        return hmac.compare_digest(self.secret_hash, key.secret_hash())


def _base62(data: bytes) -> str:
    number = int.from_bytes(data, "big")
    digits = []
    for _ in range(SECRET_LENGTH):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
