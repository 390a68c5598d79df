/*
 * What the agent tells of a job, as variables of its tasks.
 */
#ifndef STEWARD_FACTS_H
#define STEWARD_FACTS_H

#include <slurm/spank.h>

#include "wire.h"

/* Set STEWARD_PROGRESS_FILE, STEWARD_RESUME_COUNT, ... as the agent has told
 * them; what it has not told stays as it is. In slurmstepd this is for all
 * tasks of the step, in a task's own process for that task. */
void facts_publish(spank_t spank, const struct wire_answer *answer);

/* Take them out of this process's environment: what a job was told is not about
 * the ones that it submits. */
void facts_forget(void);

#endif
