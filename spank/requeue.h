/*
 * Whether the user of sbatch has said --no-requeue himself: a site's
 * JobRequeue=0 looks the same in Slurm's record of the job.
 */
#ifndef STEWARD_REQUEUE_H
#define STEWARD_REQUEUE_H

#include <stdbool.h>

/* From slurm_spank_init_post_opt. As sbatch reads it: the command line stands
 * above the script's #SBATCH lines, those above the environment. A script that
 * came by standard input cannot be read again and says nothing. */
bool requeue_is_refused(void);

#endif
