"""The registry of handlers."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from ringcron.errors import ConfigError, HandlerNotFound
from ringcron.handlers import HandlerRegistry, handler, load_handlers


async def coroutine(_: object, __: object) -> None: ...


def plain(_: object, __: object) -> None: ...


class Callable:
    async def __call__(self, _: object, __: object) -> None: ...

    async def method(self, _: object, __: object) -> None: ...


@pytest.mark.parametrize(
    ("function", "is_async"),
    [
        (coroutine, True),
        (plain, False),
        (Callable(), True),
        (Callable().method, True),
        (functools.partial(coroutine), True),
        (functools.partial(plain), False),
    ],
)
def test_what_is_async(function: Any, is_async: bool) -> None:
    registry = HandlerRegistry()
    registry.register("it", function)

    assert registry.get("it").is_async is is_async


def test_a_name_stands_for_one_function() -> None:
    registry = HandlerRegistry()
    registry.register("it", plain)
    registry.register("it", plain)
    with pytest.raises(ConfigError, match="'it' is registered twice"):
        registry.register("it", coroutine)


@pytest.mark.parametrize("name", ["", "a b", "-a", "é", "x" * 129])
def test_names(name: str) -> None:
    with pytest.raises(ConfigError, match="letters, digits"):
        HandlerRegistry().register(name, plain)


def test_a_handler_that_is_not_there_is_named_with_those_that_are() -> None:
    registry = HandlerRegistry()
    registry.register("a", plain)
    with pytest.raises(HandlerNotFound, match="no handler 'b' here; there are: a"):
        registry.get("b")


def test_an_alias_does_not_replace_a_handler() -> None:
    registry = HandlerRegistry()
    registry.register("a", plain)
    registry.register("b", coroutine)
    registry.alias("c", "a")
    registry.alias("b", "a")

    assert registry.get("c").name == "a"
    assert registry.get("b").name == "b"


def test_a_copy_goes_its_own_way() -> None:
    registry = HandlerRegistry()
    copy = registry.copy()
    copy.register("a", plain)

    assert "a" in copy
    assert "a" not in registry


def test_a_module_is_loaded_by_its_path_below_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "some_folder_of_jobs"
    folder.mkdir()
    (folder / "nightly.py").write_text(
        "from ringcron import handler\n\n@handler\ndef from_a_file(ctx, payload): pass\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/nowhere"])
    load_handlers("some_folder_of_jobs/nightly.py")
    from ringcron.handlers import REGISTRY

    assert REGISTRY.get("from_a_file").reference == "some_folder_of_jobs.nightly:from_a_file"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise SystemExit(1)", "SystemExit: 1"),
        ("import no_such_module", "ModuleNotFoundError"),
        ("x =", "SyntaxError"),
    ],
)
def test_a_module_that_cannot_be_imported_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    (tmp_path / "broken_jobs.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    with pytest.raises(ConfigError, match=rf"--handlers broken_jobs: cannot be imported: {said}"):
        load_handlers("broken_jobs")


def test_a_module_outside_of_the_current_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="in or below the current folder"):
        load_handlers(str(tmp_path / "jobs.py"))


def test_the_decorator_gives_the_function_back() -> None:
    def some_unique_name(_: object, __: object) -> None: ...

    assert handler(some_unique_name) is some_unique_name
    assert handler("some-other-unique-name")(some_unique_name) is some_unique_name
