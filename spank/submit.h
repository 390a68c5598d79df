/*
 * Where the user submits: sbatch and salloc (allocator) and srun (local).
 */
#ifndef STEWARD_SUBMIT_H
#define STEWARD_SUBMIT_H

#include <slurm/spank.h>

#include "config.h"

/* The mode in the environment of the job and of its tasks. */
#define SUBMIT_ENV_MODE "STEWARD_AUTO_RESUME"
/* The same as Slurm hands it on from the job control environment, which
 * sbatch --export=NONE does not cut off. */
#define SUBMIT_ENV_CONTROL "SLURM_SPANK_" SUBMIT_ENV_MODE
/* The option as Slurm hands it from sbatch and salloc to the sruns inside, and
 * as a user may give it by environment. */
#define SUBMIT_ENV_OPTION  "SLURM_SPANK__SLURM_SPANK_OPTION_steward_auto_resume"
#define SUBMIT_ENV_ELASTIC "SLURM_SPANK__SLURM_SPANK_OPTION_steward_elastic"

/* slurm_spank_init in sbatch and salloc: a job submitted from inside an
 * opted-in job is a job of its own and inherits nothing. */
void submit_forget_outer_job(void);

/* slurm_spank_init_post_opt in sbatch and salloc. Who asks to be resumed reads
 * what this site's settings keep Steward from doing for him. */
int submit_allocator(spank_t spank, const struct config *config);

/* slurm_spank_init_post_opt in srun, supervised or not: show the mode to the
 * tasks and to the supervisor. */
int submit_srun(spank_t spank);

#endif
