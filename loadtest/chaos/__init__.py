"""Faults on purpose, and the proof that nothing was lost, nothing ran twice at once, nothing stayed silent.

workload + nemeses ──▶ History (what the database, the sink and the callers saw) ──▶ checker ──▶ verdict, timeline
"""
