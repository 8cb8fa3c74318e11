"""Where the API is and which key it is shown, as flags, environment and folder say.

Invariant: a flag wins over its variable, that over the file that `<VARIABLE>_FILE` names, or over what the folder says.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from ringcron.cli.up_file import UP_FILE, address_in
from ringcron.errors import ConfigError

URL_VARIABLE: Final = "RINGCRON_API_URL"
KEY_VARIABLE: Final = "RINGCRON_API_KEY"
DEFAULT_URL: Final = "http://127.0.0.1:8080"
NOBODY_ANSWERS: Final = f"`ringcron up` starts one on this machine; --api or {URL_VARIABLE} names another"
"""What a person does next where the API cannot be reached."""

ApiOption = Annotated[
    str | None,
    typer.Option(
        "--api",
        envvar=URL_VARIABLE,
        metavar="URL",
        help=f"The API; default: that of the `ringcron up` in this folder, else {DEFAULT_URL}.",
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        envvar=KEY_VARIABLE,
        metavar="KEY",
        help=f"The API key. Others on this machine can see flags: prefer the variable, or {KEY_VARIABLE}_FILE.",
    ),
]


def url_of(environment: Mapping[str, str], up_file: Path = UP_FILE) -> str:
    """The address of the API, where no flag gives it."""
    return environment.get(URL_VARIABLE) or address_in(up_file, "apiUrl") or DEFAULT_URL


def key_of(environment: Mapping[str, str]) -> str | None:
    """The API key that the environment names. ConfigError where it names a file that cannot be read."""
    if key := environment.get(KEY_VARIABLE):
        return key
    path = environment.get(f"{KEY_VARIABLE}_FILE")
    if not path:
        return None
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError([f"{KEY_VARIABLE}_FILE: {path} cannot be read: {reason}"]) from None
