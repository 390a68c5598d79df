#include "facts.h"

#include <errno.h>
#include <stdio.h>
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

static const char python_path[] = "PYTHONPATH";

/* Behind what the user has there: his own modules come first. */
static void _add_python(spank_t spank, const char *folder)
{
	char has[8192] = "", all[sizeof(has) + WIRE_LINE_MAX];
	spank_err_t rc = spank_getenv(spank, python_path, has, sizeof(has));

	if ((rc != ESPANK_SUCCESS && rc != ESPANK_ENV_NOEXIST) ||
	    strstr(has, folder))
		return;
	snprintf(all, sizeof(all), "%s%s%s", has, has[0] ? ":" : "", folder);
	rc = spank_setenv(spank, python_path, all, 1);
	if (rc != ESPANK_SUCCESS)
		slurm_error("steward: cannot set %s: %s", python_path,
			    spank_strerror(rc));
}

void facts_publish(spank_t spank, const struct wire_answer *answer)
{
	for (int fact = 0; fact < WIRE_FACTS; fact++) {
		const char *value = wire_fact(answer, (enum wire_fact) fact);
		spank_err_t rc;

		if (!value)
			continue;
		if (fact == WIRE_PYTHON) {
			_add_python(spank, value);
			continue;
		}
		if (!variables[fact])
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
		if (variables[fact] && unsetenv(variables[fact]))
			slurm_error("steward: cannot unset %s: %s",
				    variables[fact], strerror(errno));
	}
}
