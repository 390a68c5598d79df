/*
 * On the node, in slurmstepd.
 */
#ifndef STEWARD_NODE_H
#define STEWARD_NODE_H

#include <slurm/spank.h>

#include "config.h"

/* slurm_spank_init_post_opt: tell the step's tasks which mode holds, and the
 * agent that a step of an opted-in job starts; what the agent tells goes into
 * the tasks' environment. Never delays the start by more than NOTICE_OPTED_MS
 * (a run that is not the first, or elastic: NOTICE_PAST_MS), never fails it. */
void node_start(spank_t spank, const struct config *config);

/* slurm_spank_task_init, in the task's process as the user: the same for a
 * script, which only now knows how often it was requeued, which partition it
 * is in and where its output goes. */
void node_task_start(spank_t spank, const struct config *config);

/* slurm_spank_task_exit: tell the agent of a task that has failed, of the
 * first few. When the script of an opted-in job has failed, hold it until the
 * agent has decided. Slurm knows nothing of the end yet: the job is running and
 * has its nodes. A script that SIGTERM has ended is not held. */
void node_task_exit(spank_t spank, const struct config *config);

/* slurm_spank_exit: a script that never began, because something failed before
 * it, is asked about as one that failed: its end may never have been told.
 */
void node_end(const struct config *config);

#endif
