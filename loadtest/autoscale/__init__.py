"""A day of clustered schedules against ways to size a pool: simulated, second by second. No cluster is needed."""
