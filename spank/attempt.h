/*
 * One attempt at a step: this same srun executed again, by its supervisor.
 *
 * Executed and not only forked, because srun may have threads by now. What the
 * child gets is what this process got: see command.h.
 */
#ifndef STEWARD_ATTEMPT_H
#define STEWARD_ATTEMPT_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "command.h"
#include "report.h"

/* What the parent knows of a running attempt. */
struct attempt {
	pid_t pid;
	int report_fd;
};

/* How the child is set up between fork and exec. */
struct attempt_setup {
	unsigned int number;	 /* 1 for the first */
	const char *exclude;	 /* nodes to leave out, or "" */
	bool own_group;		 /* give it a process group of its own */
	const sigset_t *mask;	 /* signals it starts with blocked */
	const sigset_t *ignored; /* signals it starts with ignored */
};

/* Start an attempt. To be called with all signals blocked. */
bool attempt_start(const struct command *command,
		   const struct attempt_setup *setup, struct attempt *attempt);

/* After the child has ended: what it has told. */
void attempt_finish(struct attempt *attempt, struct report *report);

#endif
