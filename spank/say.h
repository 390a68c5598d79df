/*
 * Lines for the job's user, on stderr. Some workflow systems take any such line
 * for a failure: the job (quiet=1) and its site (quiet=1 in plugstack.conf) can
 * switch them off; the job's word counts more. What refuses a submission is
 * told in any case, and the environment still has all of it (facts.c).
 */
#ifndef STEWARD_SAY_H
#define STEWARD_SAY_H

#include <stdbool.h>

#include "mode.h"

/* What the site says. */
void say_site(bool is_quiet);

/* What the job says, as soon as that is known. */
void say_mode(const struct resume_mode *mode);

bool say_is_quiet(void);

/* As slurm_info() and slurm_error(), with "steward: " in front. */
void say_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
