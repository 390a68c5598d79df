/*
 * The supervisor of a step: the process that the user knows as srun.
 */
#ifndef STEWARD_STEP_H
#define STEWARD_STEP_H

#include "config.h"

/* An agent gone mad must not have a step run for ever. */
#define STEP_ATTEMPTS_MAX 1000

/*
 * When this srun may be one of an opted-in step inside an allocation, run it
 * as a child, and again each time the agent says so. Whether it is opted in
 * only the child knows, when it has read its options; if not, this process
 * merely stands between.
 *
 * Does not return then: this process leaves the way the last attempt did, by
 * the same exit code or the same signal. Returns when there is nothing to
 * supervise, when the step wants a terminal of its own, and when no child could
 * be made; srun then goes on by itself.
 *
 * From slurm_spank_init, before srun reads its options, so that it says nothing
 * twice.
 */
void step_supervise(const struct config *config);

#endif
