"""`python -m ringcron`: the same as the command `ringcron`."""

from ringcron.cli import main

main()
