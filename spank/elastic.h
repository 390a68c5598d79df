/*
 * A job that may grow: what sbatch hands on of --elastic=, and what its tasks
 * see of it.
 */
#ifndef STEWARD_ELASTIC_H
#define STEWARD_ELASTIC_H

#include <stdbool.h>

#include <slurm/spank.h>

#include "elastic_spec.h"

#define ELASTIC_ENV	    "STEWARD_ELASTIC"
#define ELASTIC_ENV_ROLE    "STEWARD_ELASTIC_ROLE"
#define ELASTIC_ENV_RUN	    "STEWARD_ELASTIC_RUN"
#define ELASTIC_ENV_ARGS    "STEWARD_ELASTIC_ARGS"
#define ELASTIC_ENV_ADDRESS "STEWARD_ELASTIC_ADDRESS"
#define ELASTIC_ENV_TOKEN   "STEWARD_ELASTIC_TOKEN"
/* Set by the agent for the sbatch of a replica job, and for nothing else. */
#define ELASTIC_ENV_SUBMIT "STEWARD_ELASTIC_SUBMIT"

/* slurm_spank_init in sbatch and salloc: a job submitted from inside an
 * elastic one is a job of its own. True for the agent's own submission of a
 * replica job, which keeps what it was given. */
bool elastic_forget_outer_job(void);

/* Whether sbatch submits a replica job. */
bool elastic_is_replica(void);

/* Look at what the user wants of this submission. False, with one line said,
 * when it cannot work. */
bool elastic_check(const struct elastic_spec *spec);

/* Show it to the job and to the scripts that the controller runs. */
void elastic_publish(spank_t spank, const struct elastic_spec *spec);

/* On the node: what --export=NONE has taken away is there again, and the run
 * has its name. */
void elastic_show(spank_t spank, unsigned int job);

/* On the node, after elastic_show(): the spec of a script that is its run's
 * base; false for every other one. */
bool elastic_is_base(spank_t spank, struct elastic_spec *spec);

#endif
