#include "options.h"

static struct resume_mode chosen;
static bool was_given;
static struct elastic_spec chosen_spec;
static bool spec_was_given;

/* Slurm calls this for each place the option stands: the last one wins. A
 * value refused at submission cannot reach a node by the front door; one that
 * does is forged, and a node does not fail a job over it. */
static int _on_option(int val, const char *optarg, int remote)
{
	struct word_fault fault;
	struct resume_mode mode;

	(void) val;
	if (!resume_parse(optarg ? optarg : "", &mode, &fault)) {
		slurm_error("steward: --auto-resume: '%.*s' %s: " RESUME_USAGE,
			    fault.len, fault.word, fault.why);
		return remote ? 0 : -1;
	}
	chosen = mode;
	was_given = true;
	return 0;
}

static struct spank_option auto_resume = {
	.name = "auto-resume",
	.arginfo = "0|1|any:N[,...]",
	.usage =
		"resume the job after a node fault: 0 never, 1 when a fault "
		"is found, any:N up to N times without one, but not in its "
		"first minutes (age=) nor after a clear error of its own; then "
		",max=N ,stalls=N ,age=SECONDS ,backoff=0|1 ,codes=C:C "
		",timeout=0|1 ,requeue=0|1 ,hang=0|1|SECONDS ,stacks=SIGNAL "
		",checkpoint=PATH ,quiet=0|1",
	.has_arg = 1,
	.cb = _on_option,
};

static int _on_elastic(int val, const char *optarg, int remote)
{
	struct word_fault fault;
	struct elastic_spec spec;

	(void) val;
	if (!elastic_parse(optarg ? optarg : "", &spec, &fault)) {
		slurm_error("steward: --elastic: '%.*s' %s: " ELASTIC_USAGE,
			    fault.len, fault.word, fault.why);
		return remote ? 0 : -1;
	}
	chosen_spec = spec;
	spec_was_given = true;
	return 0;
}

static struct spank_option elastic = {
	.name = "elastic",
	.arginfo = "MAX|MAX:STEP|A,B,C[,...]",
	.usage = "let the job grow into idle nodes and shrink again: up to MAX "
		 "nodes, in steps, or to just these sizes; then ,grace=S "
		 ",settle=S ,faulty=S ,snooze=S ,backoff=S ,batch=N "
		 ",uneven=0|1 (implies --auto-resume=1; sbatch only)",
	.has_arg = 1,
	.cb = _on_elastic,
};

static int _register(spank_t spank, struct spank_option *option)
{
	spank_err_t rc = spank_option_register(spank, option);

	if (rc != ESPANK_SUCCESS) {
		slurm_error("steward: --%s is not to be had: %s", option->name,
			    spank_strerror(rc));
		return -1;
	}
	return 0;
}

int options_register(spank_t spank)
{
	if (_register(spank, &auto_resume))
		return -1;
	(void) _register(spank, &elastic);
	return 0;
}

bool options_given(struct resume_mode *mode)
{
	if (was_given)
		*mode = chosen;
	return was_given;
}

bool options_elastic(struct elastic_spec *spec)
{
	if (spec_was_given)
		*spec = chosen_spec;
	return spec_was_given;
}
