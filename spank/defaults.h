/*
 * Jobs that the site opts in by itself: the agent keeps the head's list in the
 * file "defaults" beside its socket, one line each, the first that fits counts:
 *
 *   partition=gpu account=llm qos=long mode=1,max=10
 *
 * partition, account and qos may be missing: any.
 */
#ifndef STEWARD_DEFAULTS_H
#define STEWARD_DEFAULTS_H

#include <stdbool.h>

#include <slurm/spank.h>

#include "config.h"
#include "mode.h"

/* Whether there is such a list; costs one system call. */
bool defaults_exist(const struct config *config);

/* The mode for the job whose script's environment is spank's; false when the
 * site has none for it. A line that makes no sense is passed over. */
bool defaults_find(spank_t spank, const struct config *config,
		   struct resume_mode *mode);

#endif
