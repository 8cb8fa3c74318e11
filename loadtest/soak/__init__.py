"""The soak: hours at a steady rate with a kill now and then, to see whether anything grows.

Invariant: the harness's own memory does not grow with the run. What has been judged is dropped, and a line of a chart
keeps so many points however long it gets.
"""
