/*
 * The words of --auto-resume=, and nothing else: no Slurm, no memory. The same
 * grammar is in daemon/steward/model/resume_mode.py; tests/modes.txt holds for
 * both.
 */
#ifndef STEWARD_MODE_H
#define STEWARD_MODE_H

#include <stdbool.h>

#include "piece.h"

#define RESUME_LIMIT_MAX 1000

/* Room for any mode as text, the final NUL included. */
#define RESUME_TEXT_MAX 401

#define RESUME_USAGE                                                      \
	"use 0, 1 or any:N with N from 1 to 1000, then ,max=N ,stalls=N " \
	",age=SECONDS ,backoff=0|1 ,codes=C:C ,timeout=0|1 ,requeue=0|1 " \
	",hang=0|1|SECONDS ,stacks=SIGNAL ,checkpoint=PATH ,quiet=0|1"

enum resume_kind {
	RESUME_OFF,	 /* 0: this job is not ours */
	RESUME_EVIDENCE, /* 1: resume when something shows a fault */
	RESUME_ANY,	 /* any:N: up to N times without evidence too */
};

struct resume_mode {
	enum resume_kind kind;
	char text[RESUME_TEXT_MAX]; /* as it was given; empty: 0 */
};

/* Read a mode from text. False, *mode untouched and *fault (may be NULL)
 * filled, unless every word of it is right. */
bool resume_parse(const char *text, struct resume_mode *mode,
		  struct word_fault *fault);

/* The mode as resume_parse() reads it. */
const char *resume_text(const struct resume_mode *mode);

#endif
