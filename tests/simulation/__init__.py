"""The whole of ringcron but its servers, in one process, under a clock and a network that a seed decides."""
