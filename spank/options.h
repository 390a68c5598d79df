/*
 * The options --auto-resume= of srun, sbatch and salloc, and --elastic= of
 * sbatch.
 */
#ifndef STEWARD_OPTIONS_H
#define STEWARD_OPTIONS_H

#include <stdbool.h>

#include <slurm/spank.h>

#include "elastic_spec.h"
#include "mode.h"

/* Make the options known to Slurm; to be called from slurm_spank_init() in
 * every context. */
int options_register(spank_t spank);

/* The option as the user gave it; false when it was not given. */
bool options_given(struct resume_mode *mode);
bool options_elastic(struct elastic_spec *spec);

#endif
