/*
 * The words of --elastic=, and nothing else: no Slurm, no memory. The same
 * grammar is in daemon/steward/model/elastic_spec.py; tests/elastic.txt holds
 * for both.
 */
#ifndef STEWARD_ELASTIC_SPEC_H
#define STEWARD_ELASTIC_SPEC_H

#include <stdbool.h>

#include "piece.h"

/* Room for any value as text, the final NUL included. */
#define ELASTIC_TEXT_MAX  201
#define ELASTIC_SIZES_MAX 64

#define ELASTIC_USAGE                                                  \
	"use MAX, MAX:STEP or A,B,C nodes (1 to 4096), then ,grace=S " \
	",settle=S ,faulty=S ,snooze=S ,backoff=S ,batch=N ,uneven=0|1"

struct elastic_spec {
	long least;		     /* of a list */
	long max;		     /* the most nodes */
	long step;		     /* 0: a list of sizes */
	char text[ELASTIC_TEXT_MAX]; /* as it was given */
};

/* Read a value of the option. False, *spec untouched and *fault (may be NULL)
 * filled, unless every word of it is right. */
bool elastic_parse(const char *text, struct elastic_spec *spec,
		   struct word_fault *fault);

/* Whether a run may begin with so many nodes; NULL, or what is wrong. */
const char *elastic_begins_with(const struct elastic_spec *spec, long nodes);

#endif
