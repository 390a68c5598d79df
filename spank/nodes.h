/*
 * Which nodes a step has, and whether its job has lost one of them: srun itself
 * calls a step a success whose other tasks have ended well, when its node is
 * dead and the job was submitted with --no-kill.
 */
#ifndef STEWARD_NODES_H
#define STEWARD_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest list, its NUL included; a longer one is not known. */
#define NODES_MAX 16384

/* The step's nodes as Slurm writes them. Asks slurmctld; false: not known. */
bool nodes_of_step(uint32_t job, uint32_t step, char nodes[NODES_MAX]);

/* The first of those nodes that the job does not have any more. Asks
 * slurmctld; false: none, or not known. */
bool nodes_lost(uint32_t job, const char *nodes, char *lost, size_t size);

#endif
