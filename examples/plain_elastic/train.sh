#!/bin/bash
#SBATCH --job-name=elastic-plain
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --no-kill
#SBATCH --open-mode=append
# Submit, in this folder:  sbatch --elastic=4 train.sh FOLDER [options of train.py]
# The same script runs in the job and in its replica jobs; docs/elastic.md says what `trap` and `setsid` are for.
set -euo pipefail

python=${PYTHON:-python3}
folder=${TRAIN_DIR:-${SLURM_SUBMIT_DIR:-.}}
launch=()
[ -z "${STEWARD_ELASTIC_RUN:-}" ] || launch=("$python" -m steward.job.launch --ranks "${RANKS:-1}")  # else a fixed size
trap : TERM
setsid --wait srun --no-kill --ntasks-per-node=1 --kill-on-bad-exit=0 \
    "${launch[@]}" "$python" "$folder/train.py" "$@"
