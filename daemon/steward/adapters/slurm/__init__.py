"""SlurmPort (`cli`): reads Slurm through a program of ours beside its library (`library`), writes by its commands.

Without an answer of the program, Slurm is read by its commands, too.
"""
