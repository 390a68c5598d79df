#include "submit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "options.h"
#include "report.h"
#include "requeue.h"

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

/* --no-requeue is the user's word, unless he says otherwise in the option
 * itself. The option as Slurm hands it on says so too. */
static void _keep_in_place(spank_t spank, struct resume_mode *mode)
{
	char text[RESUME_TEXT_MAX];
	int len =
		snprintf(text, sizeof(text), "%s,requeue=0", resume_text(mode));

	if (strstr(resume_text(mode), ",requeue=") || len < 0 ||
	    (size_t) len >= sizeof(text) || !resume_parse(text, mode, NULL))
		return;
	if (setenv(SPANK_VARIABLE, text, 1) ||
	    spank_job_control_setenv(spank, SPANK_VARIABLE, text, 1) !=
		    ESPANK_SUCCESS)
		slurm_error("steward: cannot hand on %s", text);
	slurm_info("steward: --no-requeue: steps run again in place, the job "
		   "is not requeued; --auto-resume=...,requeue=1 says "
		   "otherwise");
}

int submit_allocator(spank_t spank)
{
	struct resume_mode mode;

	if (options_given(&mode)) {
		if (mode.kind != RESUME_OFF && requeue_is_refused())
			_keep_in_place(spank, &mode);
		return _publish(spank, &mode);
	}
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
