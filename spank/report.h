/*
 * What an attempt tells its supervisor, over a pipe that the step's tasks never
 * see: which mode its options came to, and the step it got.
 */
#ifndef STEWARD_REPORT_H
#define STEWARD_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <slurm/spank.h>

#include "nodes.h"
#include "options.h"

/* "PID FD" of the supervisor: whose child this is, and where to report. */
#define REPORT_ENV "STEWARD_SUPERVISOR"
/* 1 for the first attempt; the tasks see it too. */
#define REPORT_ENV_ATTEMPT "STEWARD_ATTEMPT"

struct report {
	bool executed;		 /* false: there was no second srun at all */
	struct resume_mode mode; /* RESUME_OFF unless told otherwise */
	bool own; /* the option stands in srun's own command line */
	bool has_step;
	uint32_t job, step;    /* when has_step */
	char nodes[NODES_MAX]; /* of the step; empty: not known */
};

/* The attempt's side. */

/* Take the supervisor's mark out of the environment, before anything could
 * inherit it. From slurm_spank_init. */
void report_adopt(void);

/* True when this process is a supervisor's attempt. */
bool report_is_supervised(void);

void report_mode(const struct resume_mode *mode);

/* From slurm_spank_local_user_init, when the step has an id and nodes. */
void report_step(spank_t spank);

/* Between fork and exec: say that there will be no srun. */
void report_failure(int fd);

/* The supervisor's side. */

/* What the attempt, which has ended, has told. Does not wait. */
void report_read(int fd, struct report *report);

#endif
