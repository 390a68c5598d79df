"""Periods that checks with the same costly probe share, so that one look serves them."""

PROCESSES_S = 120.0
"""A look at every process costs milliseconds of CPU on a large node."""
