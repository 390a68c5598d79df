/*
 * The option --auto-resume=0|1|any:N of srun, sbatch and salloc.
 */
#ifndef STEWARD_OPTIONS_H
#define STEWARD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include <slurm/spank.h>

#define OPTIONS_LIMIT_MAX 1000

enum resume_kind {
	RESUME_OFF,	 /* 0: this job is not ours */
	RESUME_EVIDENCE, /* 1: resume when something shows a fault */
	RESUME_ANY,	 /* any:N: up to N times without evidence too */
};

struct resume_mode {
	enum resume_kind kind;
	unsigned int limit; /* N of any:N, else 0 */
};

/* Room for any mode as text, the final NUL included. */
#define RESUME_TEXT_MAX 16

/* Read a mode from text; false, and *mode untouched, unless it is exact. */
bool resume_parse(const char *text, struct resume_mode *mode);

/* Write the mode as resume_parse() reads it. */
void resume_format(const struct resume_mode *mode,
		   char text[static RESUME_TEXT_MAX]);

/* Make the option known to Slurm; to be called from slurm_spank_init() in
 * every context. */
int options_register(spank_t spank);

/* The option as the user gave it; false when it was not given. */
bool options_given(struct resume_mode *mode);

#endif
