/*
 * What the node's agent is told and asked without waiting for a
 * decision: each costs a job a bounded and short time, and nothing where no
 * agent is (the base of an elastic run: three seconds).
 */
#ifndef STEWARD_NOTICE_H
#define STEWARD_NOTICE_H

#include <stdbool.h>

#include "config.h"
#include "wire.h"

/* For an opted-in job's start, the agent's answer included. */
#define NOTICE_OPTED_MS 300
/* The same for a run or attempt that is not the first: it must not begin
 * without its last checkpoint, nor stumble over what the run before has left,
 * and a busy node or head takes longer. Also for the base of an elastic run,
 * which without its coordinator's address could not change its size: it dials
 * again where no agent is, because one may just be restarted. */
#define NOTICE_PAST_MS	 3000
#define NOTICE_REDIAL_MS 100
/* For each other line. */
#define NOTICE_MS 50

/* Say that a script or step of an opted-in job starts. False when the agent
 * has not answered in time; *answer is a WIRE_OK then too, without facts. */
bool notice_opted(const struct config *config, const struct wire_ask *ask,
		  struct wire_answer *answer);

/* Say that a task ended with ask->status; no answer is awaited. */
void notice_exit(const struct config *config, const struct wire_ask *ask,
		 uint32_t task);

/* Say that an attempt of the step has ended well, and what it wrote till then.
 */
void notice_ended(const struct config *config, const struct wire_ask *ask);

/* Say which file the script writes to, and how long it is before. */
void notice_log(const struct config *config, const struct wire_ask *ask,
		const char *path, uint64_t length);

#endif
