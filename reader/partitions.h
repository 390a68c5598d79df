// Slurm's partitions, and who is in them.
#ifndef STEWARD_PARTITIONS_H
#define STEWARD_PARTITIONS_H

#include <stdint.h>

#include <slurm/slurm.h>

// NULL, and errno: Slurm did not say.
const partition_info_msg_t *partitions_now(void);
// Since when the same nodes are in them, as a stamp that no other time has.
long partitions_since(void);
// For each node of Slurm's table its partitions, as `a,b`; NULL entries: none.
char **partitions_by_index(const partition_info_msg_t *parts, uint32_t nodes);
void free_partitions_by_index(char **found, uint32_t nodes);
// Of the node of that name, as partitions_now was told last; to be freed.
char *partitions_of(const char *node);

#endif
