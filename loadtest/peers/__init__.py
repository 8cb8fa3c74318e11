"""The programs that run other schedulers for `loadtest compare`: see README.md. Nothing of ringcron is imported."""
