/*
 * Signals of a supervisor: to its srun, once each.
 *
 * srun takes two interrupts within a second as "kill it", so none may arrive
 * twice. A signal from the terminal's keys reaches every process of the
 * foreground group, one from slurmstepd the script's group: those the child has
 * already when it is in that group. All others were meant for "the srun that
 * the user sees", which is the supervisor, and are passed on.
 */
#ifndef STEWARD_RELAY_H
#define STEWARD_RELAY_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct relay {
	int fd;		      /* readable when a signal has come */
	bool own_group;	      /* the child is not in our process group */
	bool parent_is_stepd; /* this srun is a task itself */
	bool told_to_end;     /* this srun was told to end */
	bool child_changed;   /* the child may have ended */
	int64_t continued_ms; /* when slurmstepd sent the last CONT; 0: never */
	unsigned int input;   /* signals of the standard input, see input.h */
	sigset_t mask;	      /* as srun had it, less what srun blocks */
	sigset_t ignored;     /* dispositions that the child inherits */
};

/* Catch the signals; all are blocked on return, in this thread. */
bool relay_begin(struct relay *relay);

/* Let them in, or keep them out while a child is made. */
void relay_open(const struct relay *relay);
void relay_close(void);

/* Pass on what has come; child is 0 when none runs. */
void relay_forward(struct relay *relay, pid_t child);

/* Back to how srun had it. */
void relay_end(struct relay *relay);

#endif
