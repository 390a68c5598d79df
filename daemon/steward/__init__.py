"""Steward: find faulty Slurm nodes, drain them, repair or replace them, and resume the jobs that opted in."""

__version__ = "0.1.0"
