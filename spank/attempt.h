/*
 * One attempt at a step: this same srun executed again, by its supervisor.
 *
 * Executed and not only forked, because srun may have threads by now. What the
 * child gets is what this process got: the arguments and the environment are
 * read back from the kernel, not from what srun has made of them since.
 */
#ifndef STEWARD_ATTEMPT_H
#define STEWARD_ATTEMPT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <slurm/spank.h>

struct words {
	char *text;  /* one block, NUL after each word */
	char **list; /* pointers into it, NULL at the end */
	size_t count;
};

struct command {
	struct words args;
	struct words env;
};

/* What the parent knows of a running attempt. */
struct attempt {
	pid_t pid;
	int step_fd; /* where the child says its step id */
};

/* How the child is set up between fork and exec. */
struct attempt_setup {
	unsigned int number;	 /* 1 for the first */
	const char *exclude;	 /* nodes to leave out, or "" */
	bool own_group;		 /* give it a process group of its own */
	const sigset_t *mask;	 /* signals it starts with blocked */
	const sigset_t *ignored; /* signals it starts with ignored */
};

/* Read this process's own command; false when /proc does not tell. */
bool command_read(struct command *command);
void command_free(struct command *command);

/* True when the user wants a terminal inside the step. */
bool command_wants_pty(const struct command *command);

/* Start an attempt. To be called with all signals blocked. */
bool attempt_start(const struct command *command,
		   const struct attempt_setup *setup, struct attempt *attempt);

/* After the child has ended: the ids it told, if it came that far. Closes
 * step_fd. False when the child could not execute srun at all. */
bool attempt_finish(struct attempt *attempt, uint32_t *job, uint32_t *step);

/* In the child: take the supervisor's mark out of the environment, before the
 * step's tasks could inherit it. From slurm_spank_init. */
void attempt_adopt(void);

/* In the child: true when this process is a supervisor's attempt. */
bool attempt_is_supervised(void);

/* In the child: tell the supervisor the step's id. From
 * slurm_spank_local_user_init. */
void attempt_report_step(spank_t spank);

#endif
