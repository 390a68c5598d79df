"""SlurmPort (`cli`): Slurm read through a program of ours beside its library (`library`), or through its commands where
it does not answer; written through the commands.
"""
