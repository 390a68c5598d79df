#!/bin/bash
#SBATCH --job-name=elastic-torch
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --no-kill
#SBATCH --open-mode=append
# Submit, in this folder:  sbatch --elastic=4 train.sh FOLDER [options of train.py]
# Two nodes are the job's own; where others are idle, the run grows up to four and gives them back when they are wanted.
# The same script runs in the job and in its replica jobs.
set -euo pipefail

python=${PYTHON:-python3}
folder=${TRAIN_DIR:-${SLURM_SUBMIT_DIR:-.}}
export OMP_NUM_THREADS=1
# scancel sends SIGTERM to this script too, upon which srun would kill the processes before they could save: srun is kept
# out of its reach, and the processes get the signal from Slurm itself.
trap : TERM
setsid --wait srun --no-kill --ntasks-per-node=1 --kill-on-bad-exit=0 \
    "$python" -m torch.distributed.run --rdzv-backend=steward --rdzv-id="${STEWARD_ELASTIC_RUN:?not an elastic job}" \
    --nnodes=1:4096 --nproc-per-node="${RANKS:-1}" --max-restarts=0 "$folder/train.py" "$@"
