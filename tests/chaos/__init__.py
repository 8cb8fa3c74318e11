"""Faults put into a copy of the product, each of which a short chaos run must notice."""
