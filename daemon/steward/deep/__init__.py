"""The runner of deep checks on the nodes: `python -m steward.deep`, one task a node, in the head's Slurm job."""
