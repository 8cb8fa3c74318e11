"""Whether a PostgreSQL of some version can be had for the tests: `python -m tests.support.availability 15`."""

from __future__ import annotations

import os
import sys

from ringcron.local.errors import NotAvailable
from ringcron.local.postgres_binaries import find_postgres
from tests.support.backends import Backend, choose, docker_answers


def main(major: int) -> int:
    """Exit code 0 where it can; else 1, and why not on standard error."""
    choice = choose({**os.environ, "RINGCRON_TEST_POSTGRES_MAJOR": str(major)}, docker_answers)
    if choice.postgres is Backend.DOCKER:
        return 0
    try:
        find_postgres(major)
    except NotAvailable as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1])))
