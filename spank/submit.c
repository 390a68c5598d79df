#include "submit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "options.h"
#include "report.h"

/* What Slurm names the option when it hands it to the node by environment. */
#define SPANK_VARIABLE "_SLURM_SPANK_OPTION_steward_auto_resume"

static void _unset(const char *name)
{
	if (unsetenv(name))
		slurm_error("steward: cannot unset %s: %s", name,
			    strerror(errno));
}

void submit_forget_outer_job(void)
{
	facts_forget();
	_unset(SPANK_VARIABLE);
	_unset(SUBMIT_ENV_CONTROL);
	/* By hand outside a job, SLURM_SPANK_... is Slurm's documented way to
	 * give an option by environment; inside, Slurm itself has set it. */
	if (getenv("SLURM_JOB_ID"))
		_unset(SUBMIT_ENV_OPTION);
}

/* Show the mode to the job, and to the scripts that the controller runs. */
static int _publish(spank_t spank, const struct resume_mode *mode)
{
	const char *text = resume_text(mode);
	spank_err_t rc;

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
	       resume_parse(inherited, mode, NULL);
}

int submit_srun(spank_t spank)
{
	struct resume_mode mode = {.kind = RESUME_OFF};
	bool is_ours = _srun_mode(&mode);

	report_mode(&mode);
	/* What an outer step has left is not about this one. */
	if (mode.kind == RESUME_OFF)
		_unset(REPORT_ENV_ATTEMPT);
	if (is_ours)
		return _publish(spank, &mode);
	if (!getenv("SLURM_JOB_ID"))
		_unset(SUBMIT_ENV_MODE);
	return 0;
}
