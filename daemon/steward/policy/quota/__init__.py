"""Quotas of teams: who may run, who gives way, and which limits and marks in Slurm say so."""
