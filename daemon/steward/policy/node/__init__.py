"""Nodes: presence, faults, guards, and the ladder of repairs."""
