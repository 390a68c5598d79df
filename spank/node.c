#include "node.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <slurm/slurm.h>

#include "agent.h"
#include "options.h"
#include "submit.h"

/* Filled at the start; mode RESUME_OFF means that the job is none of ours. */
static struct wire_ask step;
/* One number that the script's process leaves for slurmstepd; NULL: none. */
static uint32_t *script_restart;

/* Slurm tells how often a script was requeued in no other place than the
 * script's environment, which only the script's own process has seen; a step
 * has the variable from the script. */
static uint32_t _restart_count(spank_t spank)
{
	char text[16];

	if (spank_getenv(spank, "SLURM_RESTART_COUNT", text, sizeof(text)) !=
	    ESPANK_SUCCESS)
		return 0;
	return (uint32_t) strtoul(text, NULL, 10);
}

static bool _identify(spank_t spank)
{
	uid_t uid;

	if (spank_get_item(spank, S_JOB_ID, &step.job) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_STEPID, &step.step) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_UID, &uid) != ESPANK_SUCCESS)
		return false;
	step.restart = _restart_count(spank);
	step.uid = uid;
	step.attempt = 1;
	step.replay = true;
	step.kind = step.step == SLURM_BATCH_SCRIPT ? WIRE_KIND_BATCH
						    : WIRE_KIND_STEP;
	return step.step != SLURM_EXTERN_CONT;
}

static bool _mode_from(spank_t spank, const char *variable,
		       struct resume_mode *mode)
{
	char text[RESUME_TEXT_MAX];

	return spank_getenv(spank, variable, text, sizeof(text)) ==
		       ESPANK_SUCCESS &&
	       resume_parse(text, mode);
}

/* The option came with the step; a script, and a step started without it in an
 * opted-in job, have the job's environment. */
static bool _find_mode(spank_t spank, struct resume_mode *mode)
{
	char text[RESUME_TEXT_MAX];
	spank_err_t rc;

	if (!options_given(mode) && !_mode_from(spank, SUBMIT_ENV_MODE, mode) &&
	    !_mode_from(spank, SUBMIT_ENV_CONTROL, mode))
		return false;
	resume_format(mode, text);
	/* With --export=NONE it has got lost on the way. */
	rc = spank_setenv(spank, SUBMIT_ENV_MODE, text, 1);
	if (rc != ESPANK_SUCCESS)
		slurm_error("steward: cannot set %s=%s for job %" PRIu32 ": %s",
			    SUBMIT_ENV_MODE, text, step.job,
			    spank_strerror(rc));
	return true;
}

static void _tell(const struct config *config)
{
	if (!agent_tell(config, &step))
		slurm_info("steward: no agent at %s knows of job %" PRIu32,
			   config->socket, step.job);
}

static uint32_t *_shared_number(void)
{
	void *page = mmap(NULL, sizeof(uint32_t), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

void node_start(spank_t spank, const struct config *config)
{
	struct resume_mode mode;

	if (!_identify(spank) || !_find_mode(spank, &mode) ||
	    mode.kind == RESUME_OFF)
		return;
	step.mode = mode;
	if (step.kind == WIRE_KIND_BATCH)
		script_restart = _shared_number();
	else
		_tell(config);
}

void node_task_start(spank_t spank, const struct config *config)
{
	if (step.mode.kind == RESUME_OFF || step.kind != WIRE_KIND_BATCH)
		return;
	step.restart = _restart_count(spank);
	if (script_restart)
		*script_restart = step.restart;
	_tell(config);
}

static const char *_verb_name(enum wire_verb verb)
{
	return verb == WIRE_REQUEUE ? "requeued" : "not resumed";
}

/* A script that SIGTERM has ended was told to go: by scancel, by a time limit,
 * by a requeue. To hold a job that Slurm is ending keeps its nodes, and when it
 * lasts, Slurm drains them ("Kill task failed"). */
static bool _was_told_to_end(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
}

void node_task_exit(spank_t spank, const struct config *config)
{
	struct wire_answer answer;
	const char *why;

	if (step.mode.kind == RESUME_OFF || step.kind != WIRE_KIND_BATCH)
		return;
	if (spank_get_item(spank, S_TASK_EXIT_STATUS, &step.status) !=
		    ESPANK_SUCCESS ||
	    !step.status || _was_told_to_end(step.status))
		return;
	if (script_restart)
		step.restart = *script_restart;
	slurm_info("steward: job %" PRIu32 ": script ended with status 0x%x, "
		   "held for the agent's decision",
		   step.job, (unsigned int) step.status);
	if (agent_ask(config, &step, NULL, &answer, &why))
		slurm_info("steward: job %" PRIu32 ": %s", step.job,
			   _verb_name(answer.verb));
	else
		slurm_info("steward: job %" PRIu32 ": let go: %s", step.job,
			   why);
}
