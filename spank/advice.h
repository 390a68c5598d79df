/*
 * What sbatch and salloc say of a submission that asks to be resumed and lacks
 * something for it: one line each, and nothing is refused.
 */
#ifndef STEWARD_ADVICE_H
#define STEWARD_ADVICE_H

#include "config.h"
#include "mode.h"

/* As for sbatch_words_read(). */
void advice_show(const struct config *config, const struct resume_mode *mode);

#endif
