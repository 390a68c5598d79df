"""Stand-ins that keep state, for what is behind the ports.

Three kinds of Slurm, because none can stand for another:
- `slurm.py` with `slurm_cluster.py` and `slurm_places.py` is `SlurmPort` with its refusals, held to the contract that
  real Slurm passes. Time moves by `tick`; no job works and no node dies by itself.
- `sim_slurm.py` is a cluster in which time passes, jobs work and nodes fall silent, for stories of the whole policy.
  `deep_world`, `team_world`, `run_world` and `group_world` add one subject each; `tests/chaos/slurm_port.py` puts the
  real head over any of them.
- Pictures without a cluster, for properties that make thousands of plans: `elastic_world` (changes of size), and in
  tests/property `quota_world` (parts of a node, where `sim_slurm` gives whole ones) and `quota_law` (rulings alone).
"""
