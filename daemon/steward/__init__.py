"""Steward: faulty Slurm nodes are found, taken out and replaced. Marked jobs resume by themselves."""

__version__ = "0.1.0"
