"""API keys: their form, what is kept of them, what each scope includes; and that nothing shows the secret."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256

import pytest

from ringcron import api_keys
from ringcron.api_keys import ApiKey, KeyText, Scope


def kept(key: KeyText) -> ApiKey:
    return ApiKey(
        id=key.id,
        name="billing",
        secret_hash=key.secret_hash(),
        scope=Scope.READ,
        rate_per_second=None,
        burst=None,
        created_at=datetime(2027, 1, 1, tzinfo=UTC),
        last_used_at=None,
        revoked_at=None,
    )


def test_a_new_key_has_its_form_and_is_like_no_other() -> None:
    keys = [KeyText.draw() for _ in range(100)]
    assert len({key.id for key in keys}) == len({key.secret for key in keys}) == 100
    for key in keys:
        prefix, key_id, secret = key.reveal().split("_")
        assert (prefix, len(key_id), len(secret)) == ("rc", 10, 43)
        assert KeyText.parse(key.reveal()) == key


@pytest.mark.parametrize(
    ("number", "last"), [(0, "0" * 43), (1, "0" * 42 + "1"), (61, "0" * 42 + "z"), (62, "0" * 41 + "10")]
)
def test_the_secret_is_32_bytes_in_base62(monkeypatch: pytest.MonkeyPatch, number: int, last: str) -> None:
    monkeypatch.setattr(api_keys.secrets, "token_bytes", lambda count: number.to_bytes(count, "big"))
    assert KeyText.draw().secret == last


def test_no_32_bytes_are_too_many_for_43_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = []
    for number in (2**256 - 1, 2**256 - 2, 62**42):
        monkeypatch.setattr(api_keys.secrets, "token_bytes", lambda count, number=number: number.to_bytes(count, "big"))
        secrets.append(KeyText.draw().secret)
    assert len(set(secrets)) == 3
    assert secrets[2] == "1" + "0" * 42


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rc_",
        "rc__",
        f"rc_{'a' * 10}",
        f"rc_{'a' * 10}_{'b' * 42}",
        f"rc_{'a' * 10}_{'b' * 44}",
        f"rc_{'a' * 9}_{'b' * 43}",
        f"RC_{'a' * 10}_{'b' * 43}",
        f"rc_{'a' * 10}_{'b' * 42}-",
        f"rc_{'a' * 10}_{'b' * 42}٣",
        f"rc_{'a' * 10}_{'b' * 43}\n",
        f" rc_{'a' * 10}_{'b' * 43}",
    ],
)
def test_what_has_not_the_form_is_no_key(text: str) -> None:
    assert KeyText.parse(text) is None


def test_only_the_right_secret_opens_and_only_its_hash_is_kept() -> None:
    key, other = KeyText.draw(), KeyText.draw()
    assert kept(key).is_opened_by(key)
    assert not kept(key).is_opened_by(KeyText(id=key.id, secret=other.secret))
    assert kept(key).secret_hash == sha256(key.secret.encode()).digest()


def test_no_repr_shows_the_secret_or_its_hash() -> None:
    key = KeyText.draw()
    shown = f"{key!r} {key} {kept(key)!r}"
    assert key.id in shown
    assert key.secret not in shown
    assert repr(key.secret_hash()) not in shown


def test_each_scope_includes_the_ones_before_it() -> None:
    included = {scope: {other for other in Scope if scope.includes(other)} for scope in Scope}
    assert included == {
        Scope.READ: {Scope.READ},
        Scope.WRITE: {Scope.READ, Scope.WRITE},
        Scope.ADMIN: {Scope.READ, Scope.WRITE, Scope.ADMIN},
    }
