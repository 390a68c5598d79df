/*
 * The supervisor of a step: the process that the user knows as srun.
 */
#ifndef STEWARD_STEP_H
#define STEWARD_STEP_H

#include "config.h"
#include "options.h"

/* An agent gone mad must not have a step run for ever. */
#define STEP_ATTEMPTS_MAX 1000

/*
 * Run the step as a child srun, and again each time the agent says so. Does not
 * return when all goes well: this process leaves the way the last attempt did,
 * by the same exit code or the same signal. Returns when no child could be
 * made, or the step wants a terminal of its own; srun then goes on by itself.
 */
void step_supervise(const struct config *config,
		    const struct resume_mode *mode);

#endif
