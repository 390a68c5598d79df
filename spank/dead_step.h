/*
 * Steps whose last node died, which Slurm before 23.11 never ends.
 */
#ifndef STEWARD_DEAD_STEP_H
#define STEWARD_DEAD_STEP_H

#include <stdint.h>

/* The longest that slurmctld is waited for. */
#define DEAD_STEP_MS 2000

/*
 * Have Slurm end the job's steps that stand in its books although all their
 * nodes were counted out: they keep their CPUs, devices and memory from all
 * later steps. A step that still runs somewhere is not touched. Does nothing
 * from 23.11 on, and where slurmctld does not answer. To be called with all
 * signals blocked.
 */
void dead_step_end(uint32_t job);

#endif
