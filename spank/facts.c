#include "facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const variables[WIRE_FACTS] = {
	[WIRE_PROGRESS_FILE] = "STEWARD_PROGRESS_FILE",
	[WIRE_STACKS_FILE] = "STEWARD_STACKS_FILE",
	[WIRE_RESUME_COUNT] = "STEWARD_RESUME_COUNT",
	[WIRE_LAST_CHECKPOINT] = "STEWARD_LAST_CHECKPOINT",
	[WIRE_LAST_STEP] = "STEWARD_LAST_STEP",
	[WIRE_EXCLUDED_NODES] = "STEWARD_EXCLUDED_NODES",
	[WIRE_CULPRITS] = "STEWARD_CULPRITS",
	[WIRE_RESUME_REASON] = "STEWARD_RESUME_REASON",
	[WIRE_ELASTIC_ADDRESS] = "STEWARD_ELASTIC_ADDRESS",
	[WIRE_ELASTIC_TOKEN] = "STEWARD_ELASTIC_TOKEN",
	[WIRE_RESUMED] = "STEWARD_RESUMED",
	[WIRE_WARNING] = "STEWARD_WARNING",
};

void facts_publish(spank_t spank, const struct wire_answer *answer)
{
	for (int fact = 0; fact < WIRE_FACTS; fact++) {
		const char *value = wire_fact(answer, (enum wire_fact) fact);
		spank_err_t rc;

		if (!value)
			continue;
		rc = spank_setenv(spank, variables[fact], value, 1);
		if (rc != ESPANK_SUCCESS)
			slurm_error("steward: cannot set %s: %s",
				    variables[fact], spank_strerror(rc));
	}
}

void facts_forget(void)
{
	for (int fact = 0; fact < WIRE_FACTS; fact++) {
		if (unsetenv(variables[fact]))
			slurm_error("steward: cannot unset %s: %s",
				    variables[fact], strerror(errno));
	}
}
