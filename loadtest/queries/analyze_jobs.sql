-- Statistics after a bulk load, as an operator would have them made.
analyze jobs
