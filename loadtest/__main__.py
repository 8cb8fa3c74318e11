"""python -m loadtest"""

from __future__ import annotations

from loadtest.cli import app

if __name__ == "__main__":
    app(prog_name="python -m loadtest")
