-- Fresh statistics once a run's own jobs are in: without them some contestants plan for an empty table.
analyze
