-- A template as a database looks that has been running for a while.
vacuum (analyze)
