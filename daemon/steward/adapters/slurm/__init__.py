"""SlurmPort (`cli`): reads through steward-slurm, which is linked with Slurm's library, and writes by Slurm's commands.

If steward-slurm does not answer (`library`), the commands read, too.
"""
