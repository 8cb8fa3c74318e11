"""Sessions: what a cookie says, how long it says it, and that nobody else can write one. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ringcron.api_keys import ApiKey, KeyText, Scope
from ringcron_api.dashboard.session import LIFE_SECONDS, begin, key_id_in, open_session, resume

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def kept(key: KeyText, scope: Scope = Scope.READ) -> ApiKey:
    return ApiKey(
        id=key.id,
        name="ops",
        secret_hash=key.secret_hash(),
        scope=scope,
        rate_per_second=None,
        burst=None,
        created_at=NOW,
        last_used_at=None,
        revoked_at=None,
    )


KEY = kept(KeyText.draw(), Scope.WRITE)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_a_session_lasts_as_long_as_it_is_used() -> None:
    session = begin(KEY, NOW)
    assert session.cookie is not None
    assert key_id_in(session.cookie) == KEY.id
    soon = resume(session.cookie, KEY, after(LIFE_SECONDS / 2 - 1))
    assert soon is not None
    assert (soon.token, soon.cookie) == (session.token, None)
    later = resume(session.cookie, KEY, after(LIFE_SECONDS - 1))
    assert later is not None
    assert later.cookie is not None
    assert later.token == session.token  # a form that is open keeps its token
    assert resume(later.cookie, KEY, after(2 * LIFE_SECONDS - 2)) is not None
    assert resume(session.cookie, KEY, after(LIFE_SECONDS + 1)) is None
    assert resume(session.cookie, KEY, after(-60)) is None  # it says more than a life: nobody of ours wrote it


def test_another_key_s_hash_opens_nothing() -> None:
    cookie = begin(KEY, NOW).cookie
    assert cookie is not None
    other = kept(KeyText.draw())
    assert resume(cookie, other, NOW) is None
    assert resume(cookie.replace(KEY.id, other.id), other, NOW) is None
    assert resume(cookie.replace(KEY.id, other.id), KEY, NOW) is None


@pytest.mark.parametrize(
    "text", ["", "x", "a.1.b.c", "a.1." + "0" * 32 + "." + "0" * 64, "٣.1." + "0" * 32 + "." + "0" * 64]
)
def test_what_has_not_the_form_is_no_cookie(text: str) -> None:
    assert resume(text, KEY, NOW) is None


def test_no_cookie_holds_a_secret() -> None:
    key = KeyText.draw()
    session = begin(kept(key), NOW)
    assert key.secret not in f"{session.cookie}{session.token}"
    assert kept(key).secret_hash.hex() not in f"{session.cookie}{session.token}"


def test_scopes_and_sessions_without_a_key() -> None:
    assert [begin(KEY, NOW).may(scope) for scope in Scope] == [True, True, False]
    first = open_session(None)
    assert first.cookie is not None
    again = open_session(first.cookie)
    assert (again.token, again.cookie) == (first.token, None)
    assert all(again.may(scope) for scope in Scope)
    assert open_session("not ours").token != open_session("not ours").token
