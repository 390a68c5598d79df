"""`steward rehearse`: whether a user's own script can be resumed, tried before the long run.

The script runs as a job of its user, by Slurm's own commands (`own_job`); no right is used that the user does not have.
`signs` reads its output, `saves` sees what it writes, `rehearsal` makes the faults, and `verdict` judges.
"""
