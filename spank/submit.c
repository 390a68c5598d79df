#include "submit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advice.h"
#include "elastic.h"
#include "facts.h"
#include "options.h"
#include "report.h"
#include "requeue.h"
#include "rules_file.h"
#include "say.h"
#include "warning.h"

/* What Slurm names the option when it hands it to the node by environment. */
#define SPANK_VARIABLE	 "_SLURM_SPANK_OPTION_steward_auto_resume"
#define ELASTIC_VARIABLE "_SLURM_SPANK_OPTION_steward_elastic"

/* What Slurm's commands end with for an option's value that is no good. */
#define REFUSED 255

static void _unset(const char *name)
{
	if (unsetenv(name))
		slurm_error("steward: cannot unset %s: %s", name,
			    strerror(errno));
}

void submit_forget_outer_job(void)
{
	if (!elastic_forget_outer_job())
		facts_forget();
	_unset(SPANK_VARIABLE);
	_unset(ELASTIC_VARIABLE);
	_unset(SUBMIT_ENV_CONTROL);
	/* By hand outside a job, SLURM_SPANK_... is Slurm's documented way to
	 * give an option by environment; inside, Slurm itself has set it. */
	if (getenv("SLURM_JOB_ID")) {
		_unset(SUBMIT_ENV_OPTION);
		_unset(SUBMIT_ENV_ELASTIC);
		_unset(SUBMIT_ENV_MODE);
	}
}

/* Ends the command, which has submitted nothing yet: Slurm goes on without an
 * optional plugin that fails after the options were read. */
static _Noreturn void _refuse(void)
{
	exit(REFUSED);
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

/* Turn --no-requeue into requeue=0, unless the option has a requeue= itself.
 * The option as Slurm hands it on says so too. */
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
	say_info("--no-requeue: steps run again in place, the job "
		 "is not requeued (override with "
		 "--auto-resume=...,requeue=1)");
}

/* A replica job ends with its run, and is made anew rather than resumed. */
static int _publish_replica(spank_t spank)
{
	struct resume_mode off = {.kind = RESUME_OFF};
	struct elastic_spec none = {0};

	elastic_publish(spank, &none);
	if (setenv(SPANK_VARIABLE, "0", 1) ||
	    spank_job_control_setenv(spank, SPANK_VARIABLE, "0", 1) !=
		    ESPANK_SUCCESS)
		slurm_error("steward: cannot hand on %s", SPANK_VARIABLE);
	return _publish(spank, &off);
}

/* Without the option the environment may say it: a script then also runs from
 * a host where this plugin, and so the option, is not known. False when its
 * word is no good. */
static bool _mode_wanted(struct resume_mode *mode, bool *is_given)
{
	const char *text = getenv(SUBMIT_ENV_MODE);
	struct word_fault fault;

	*is_given = options_given(mode);
	if (*is_given || !text)
		return true;
	*is_given = resume_parse(text, mode, &fault);
	if (!*is_given)
		slurm_error("steward: " SUBMIT_ENV_MODE
			    " in the environment: '%.*s' %s: " RESUME_USAGE,
			    fault.len, fault.word, fault.why);
	return *is_given;
}

/* An elastic job is one that is resumed. */
static bool _resumes(const struct elastic_spec *spec, struct resume_mode *mode,
		     bool *is_given)
{
	if (*is_given && mode->kind == RESUME_OFF) {
		slurm_error("steward: --elastic=%s needs --auto-resume: leave "
			    "out --auto-resume=0",
			    spec->text);
		return false;
	}
	if (!*is_given)
		*is_given = resume_parse("1", mode, NULL);
	return true;
}

int submit_allocator(spank_t spank, const struct config *config)
{
	struct elastic_spec spec;
	struct resume_mode mode;
	bool is_given;

	if (elastic_is_replica())
		return _publish_replica(spank);
	if (!_mode_wanted(&mode, &is_given))
		_refuse();
	if (options_elastic(&spec)) {
		if (!_resumes(&spec, &mode, &is_given) || !elastic_check(&spec))
			_refuse();
		elastic_publish(spank, &spec);
	}
	if (is_given)
		say_mode(&mode);
	rules_file_show();
	if (is_given) {
		if (mode.kind != RESUME_OFF)
			warning_show(config);
		if (mode.kind != RESUME_OFF && requeue_is_refused())
			_keep_in_place(spank, &mode);
		if (mode.kind != RESUME_OFF)
			advice_show(config, &mode);
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
	struct elastic_spec spec;

	if (!getenv("SLURM_JOB_ID") && options_elastic(&spec)) {
		slurm_error("steward: --elastic: '%.64s' is for sbatch only",
			    spec.text);
		_refuse();
	}
	say_mode(&mode);
	if (!getenv("SLURM_JOB_ID") && mode.kind != RESUME_OFF)
		say_info("--auto-resume: an srun that makes its own allocation "
			 "ends with it and is not run again: use sbatch, or "
			 "srun inside of salloc");
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
