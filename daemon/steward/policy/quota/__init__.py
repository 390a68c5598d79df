"""Quotas of teams: who may run, who is evicted, and which limits and marks in Slurm say so."""
