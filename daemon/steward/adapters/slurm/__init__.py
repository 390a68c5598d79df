"""SlurmPort: Slurm through its commands (`cli`) or, where it matches the cluster, through pyslurm (`native`).

`choose` picks one; both read the same JSON-shaped records (`records`) and both keep the same rules (`rules`).
"""
