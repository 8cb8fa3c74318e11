"""Formal models of what the promises rest on, and the search for a state that breaks one. See README.md."""
