#include "submit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attempt.h"
#include "options.h"
#include "step.h"

/* What Slurm names the option when it hands it on by environment. */
#define SPANK_VARIABLE "_SLURM_SPANK_OPTION_steward_auto_resume"

static void _unset(const char *name)
{
	if (unsetenv(name))
		slurm_error("steward: cannot unset %s: %s", name,
			    strerror(errno));
}

void submit_forget_outer_job(void)
{
	_unset(SPANK_VARIABLE);
	_unset(SUBMIT_ENV_CONTROL);
	/* By hand outside a job, SLURM_SPANK_... is Slurm's documented way to
	 * give an option by environment; inside, Slurm itself has set it. */
	if (getenv("SLURM_JOB_ID"))
		_unset("SLURM_SPANK_" SPANK_VARIABLE);
}

/* Show the mode to the job, and to the scripts that the controller runs. */
static int _publish(spank_t spank, const struct resume_mode *mode)
{
	char text[RESUME_TEXT_MAX];
	spank_err_t rc;

	resume_format(mode, text);
	if (setenv(SUBMIT_ENV_MODE, text, 1)) {
		slurm_error("steward: cannot set %s: %s", SUBMIT_ENV_MODE,
			    strerror(errno));
		return -1;
	}
	rc = spank_job_control_setenv(spank, SUBMIT_ENV_MODE, text, 1);
	if (rc != ESPANK_SUCCESS) {
		slurm_error("steward: cannot tell the controller %s=%s: %s",
			    SUBMIT_ENV_MODE, text, spank_strerror(rc));
		return -1;
	}
	return 0;
}

int submit_allocator(spank_t spank)
{
	struct resume_mode mode;

	if (options_given(&mode))
		return _publish(spank, &mode);
	_unset(SUBMIT_ENV_MODE);
	return 0;
}

/* The option stands above what the job brings along. */
static bool _srun_mode(struct resume_mode *mode)
{
	const char *inherited = getenv(SUBMIT_ENV_MODE);

	if (options_given(mode))
		return true;
	return getenv("SLURM_JOB_ID") && inherited &&
	       resume_parse(inherited, mode);
}

int submit_srun(spank_t spank, const struct config *config)
{
	struct resume_mode mode;
	int rc;

	if (!_srun_mode(&mode)) {
		if (!getenv("SLURM_JOB_ID"))
			_unset(SUBMIT_ENV_MODE);
		return 0;
	}
	rc = _publish(spank, &mode);
	if (mode.kind != RESUME_OFF && getenv("SLURM_JOB_ID") &&
	    !attempt_is_supervised())
		step_supervise(config, &mode);
	return rc;
}
