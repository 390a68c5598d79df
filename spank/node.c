#include "node.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/slurm.h>

#include "agent.h"
#include "defaults.h"
#include "elastic.h"
#include "facts.h"
#include "notice.h"
#include "options.h"
#include "output.h"
#include "report.h"
#include "say.h"
#include "submit.h"

#define EXITS_MAX 8

/* What the script's process leaves for slurmstepd, which cannot know it. */
struct script {
	bool told; /* it came so far */
	uint32_t restart;
	struct resume_mode mode;
	bool has_agent; /* one has answered at its start */
};

/* Filled at the start; mode RESUME_OFF means that the job is none of ours. */
static struct wire_ask step;
/* Whether the user, or the job, has said which mode holds. */
static bool has_mode;
/* NULL: neither opted in nor to be by the site. */
static struct script *script;
/* The script's file was where slurmstepd had put it, or was swept away from
 * there already. */
static bool had_script;
/* Tells when the script's file is opened: to run it, the kernel does. -1: not
 * known. */
static int script_watch = -1;
static bool has_asked;

/* Slurm tells how often a script was requeued in no other place than the
 * script's environment, which only the script's own process has seen; a step
 * has the variable from the script. */
static uint32_t _number(spank_t spank, const char *variable)
{
	char text[16];

	if (spank_getenv(spank, variable, text, sizeof(text)) != ESPANK_SUCCESS)
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
	step.restart = _number(spank, "SLURM_RESTART_COUNT");
	step.uid = uid;
	step.replay = true;
	step.kind = step.step == SLURM_BATCH_SCRIPT ? WIRE_KIND_BATCH
						    : WIRE_KIND_STEP;
	step.attempt = step.kind == WIRE_KIND_STEP
			       ? _number(spank, REPORT_ENV_ATTEMPT)
			       : 1;
	if (!step.attempt)
		step.attempt = 1;
	return step.step != SLURM_EXTERN_CONT;
}

/* What is wrong with the job's wish: a job that came by another way than sbatch
 * (slurmrestd, DRMAA) was not refused for it. */
static char wrong_mode[RESUME_TEXT_MAX + 512];

static bool _mode_from(spank_t spank, const char *variable,
		       struct resume_mode *mode)
{
	struct word_fault fault;
	char text[RESUME_TEXT_MAX];

	if (spank_getenv(spank, variable, text, sizeof(text)) != ESPANK_SUCCESS)
		return false;
	if (resume_parse(text, mode, &fault))
		return true;
	(void) snprintf(wrong_mode, sizeof(wrong_mode),
			"%s: '%.*s' %s: " RESUME_USAGE
			": the job has no say in whether it is resumed",
			variable, fault.len, fault.word, fault.why);
	return false;
}

/* The option came with the step; a script, and a step started without it in an
 * opted-in job, have the job's environment. */
static bool _find_mode(spank_t spank, struct resume_mode *mode)
{
	return options_given(mode) ||
	       _mode_from(spank, SUBMIT_ENV_MODE, mode) ||
	       _mode_from(spank, SUBMIT_ENV_CONTROL, mode);
}

/* With --export=NONE it has got lost on the way. */
static void _show_mode(spank_t spank)
{
	const char *text = resume_text(&step.mode);
	spank_err_t rc = spank_setenv(spank, SUBMIT_ENV_MODE, text, 1);

	if (rc != ESPANK_SUCCESS)
		slurm_error("steward: cannot set %s=%s for job %" PRIu32 ": %s",
			    SUBMIT_ENV_MODE, text, step.job,
			    spank_strerror(rc));
}

/* Where slurmstepd put the script; NULL where it does not say. */
static const char *_script_path(spank_t spank)
{
	char **words;
	int count;

	if (spank_get_item(spank, S_JOB_ARGV, &count, &words) !=
		    ESPANK_SUCCESS ||
	    count < 1)
		return NULL;
	return words[0];
}

/* False where it cannot be known. */
static bool _script_is(spank_t spank, bool there)
{
	const char *path = _script_path(spank);

	if (!path)
		return false;
	return access(path, F_OK) ? !there && errno == ENOENT : there;
}

/* slurmd takes a script for one of a job that is over when it registers before
 * it knows of the script's slurmstepd, and sweeps the job's folder away before
 * we begin (stepd_api.c, _handle_stray_script). The spool above it shows that
 * we see the place where the script had been. */
static bool _was_swept_before(spank_t spank)
{
	static const char name[] = "/slurm_script";
	const char *path = _script_path(spank);
	size_t length = path ? strlen(path) : 0;
	char folder[PATH_MAX];
	char *above;

	if (length <= sizeof(name) - 1 || length >= sizeof(folder) ||
	    strcmp(path + length - (sizeof(name) - 1), name) != 0)
		return false;
	memcpy(folder, path, length + 1);
	folder[length - (sizeof(name) - 1)] = '\0';
	if (!access(folder, F_OK) || errno != ENOENT)
		return false;
	above = strrchr(folder, '/');
	if (!above || above == folder)
		return false;
	*above = '\0';
	return !access(folder, F_OK);
}

static void _watch_script(spank_t spank)
{
	const char *path = _script_path(spank);

	script_watch = path ? inotify_init1(IN_NONBLOCK | IN_CLOEXEC) : -1;
	if (script_watch >= 0 &&
	    inotify_add_watch(script_watch, path, IN_OPEN) < 0) {
		(void) close(script_watch);
		script_watch = -1;
	}
}

/* Something before it failed: another plugin, a TaskProlog. False where it
 * cannot be known. */
static bool _has_not_begun(void)
{
	char event[sizeof(struct inotify_event) + NAME_MAX + 1];

	return script_watch >= 0 &&
	       read(script_watch, event, sizeof(event)) < 0 && errno == EAGAIN;
}

/* In the script's own process: one line in the job's output. */
static void _say(const char *before, const char *what)
{
	if (!what || say_is_quiet())
		return;
	if (dprintf(STDERR_FILENO, "steward: %s%s\n", before, what) < 0)
		slurm_info("steward: job %" PRIu32
			   ": no line in its output: %m",
			   step.job);
}

/* Processes that an earlier run or attempt left on this node. */
static char left_behind[WIRE_LINE_MAX];

static void _say_left(void)
{
	_say("left running here by an earlier attempt: ",
	     left_behind[0] ? left_behind : NULL);
}

static const char no_coordinator[] =
	"--elastic: this node's agent told of no coordinator in time: the run "
	"stays at its size";

/* False when no agent has answered. */
static bool _tell(spank_t spank, const struct config *config)
{
	struct wire_answer answer;
	const char *left;
	bool is_noted = notice_opted(config, &step, &answer);

	say_mode(&step.mode);
	if (!is_noted)
		slurm_info("steward: no agent at %s takes note of job %" PRIu32,
			   config->socket, step.job);
	facts_publish(spank, &answer);
	left = wire_fact(&answer, WIRE_LEFT_BEHIND);
	(void) !snprintf(left_behind, sizeof(left_behind), "%s",
			 left ? left : "");
	if (step.kind == WIRE_KIND_BATCH) {
		_say("resumed, ", wire_fact(&answer, WIRE_RESUMED));
		_say("", wire_fact(&answer, WIRE_WARNING));
		_say_left();
		if (step.elastic && !wire_fact(&answer, WIRE_ELASTIC_ADDRESS))
			_say("", no_coordinator);
	}
	return is_noted;
}

static struct script *_shared_page(void)
{
	void *page = mmap(NULL, sizeof(struct script), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

void node_start(spank_t spank, const struct config *config)
{
	if (!_identify(spank)) {
		step.mode.kind = RESUME_OFF;
		return;
	}
	has_mode = _find_mode(spank, &step.mode);
	if (has_mode)
		_show_mode(spank);
	elastic_show(spank, step.job);
	if (step.kind == WIRE_KIND_BATCH) {
		if (has_mode || defaults_exist(config))
			script = _shared_page();
		had_script =
			_script_is(spank, true) || _was_swept_before(spank);
		if (script)
			_watch_script(spank);
	} else if (step.mode.kind != RESUME_OFF) {
		(void) _tell(spank, config);
	}
}

static void _tell_of_output(const struct config *config)
{
	char path[WIRE_LINE_MAX];
	uint64_t length;

	if (output_path(path, sizeof(path), &length))
		notice_log(config, &step, path, length);
}

void node_task_start(spank_t spank, const struct config *config)
{
	static struct elastic_spec spec;

	int task;

	if (step.kind == WIRE_KIND_STEP && step.attempt > 1 &&
	    step.mode.kind != RESUME_OFF &&
	    spank_get_item(spank, S_TASK_ID, &task) == ESPANK_SUCCESS && !task)
		_say_left();
	if (step.kind == WIRE_KIND_BATCH && !has_mode)
		_say("", wrong_mode[0] ? wrong_mode : NULL);
	if (!script || step.kind != WIRE_KIND_BATCH)
		return;
	if (!has_mode) {
		if (!defaults_find(spank, config, &step.mode))
			return;
		_show_mode(spank);
	}
	step.restart = _number(spank, "SLURM_RESTART_COUNT");
	step.elastic = elastic_is_base(spank, &spec) ? spec.text : NULL;
	*script = (struct script){
		.told = true, .restart = step.restart, .mode = step.mode};
	script->has_agent = _tell(spank, config);
	if (step.mode.kind != RESUME_OFF)
		_tell_of_output(config);
}

/* To stop holding says nothing of what becomes of the job: Slurm may requeue
 * it itself, and evidence may come later. */
static const char *_verb_name(enum wire_verb verb)
{
	return verb == WIRE_REQUEUE ? "requeued" : "let go";
}

/* SIGTERM is how Slurm ends a job (scancel, time limit, requeue), and also how
 * many a script ends itself: the head sees which, and lets go of the first at
 * once. No task waits for an agent that is not there: to hold a job that Slurm
 * is ending keeps its nodes. */
static bool _may_be_ended_by_slurm(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
}

/* A requeue back to the same node can have its script swept away by the
 * clean-up of the run before: then slurmstepd's execve() has failed. A script
 * whose interpreter is not there ends the same way, but is there itself. */
static bool _was_lost_by_slurm(spank_t spank)
{
	return WIFEXITED(step.status) && WEXITSTATUS(step.status) == ENOENT &&
	       had_script && _script_is(spank, false);
}

static void _tell_of_exit(spank_t spank, const struct config *config)
{
	static int told;
	uint32_t task;

	if (told >= EXITS_MAX ||
	    spank_get_item(spank, S_TASK_GLOBAL_ID, &task) != ESPANK_SUCCESS)
		return;
	told++;
	notice_exit(config, &step, task);
}

static void _hold(const struct config *config)
{
	struct wire_answer answer;
	const char *why;

	has_asked = true;
	slurm_info("steward: job %" PRIu32 ": script ended with status 0x%x, "
		   "held for the agent's decision",
		   step.job, (unsigned int) step.status);
	if (agent_ask(config, &step,
		      script && script->has_agent &&
			      !_may_be_ended_by_slurm(step.status),
		      NULL, &answer, &why))
		slurm_info("steward: job %" PRIu32 ": %s", step.job,
			   _verb_name(answer.verb));
	else
		slurm_info("steward: job %" PRIu32 ": let go: %s", step.job,
			   why);
}

void node_task_exit(spank_t spank, const struct config *config)
{
	bool is_script = step.kind == WIRE_KIND_BATCH;

	if (is_script && script && script->told) {
		step.restart = script->restart;
		step.mode = script->mode;
	}
	/* Of a step that was taken out of its job's wish (`--auto-resume=0`)
	 * the head hears that it failed, since it may be why the script does.
	 */
	if ((step.mode.kind == RESUME_OFF && (is_script || !has_mode)) ||
	    spank_get_item(spank, S_TASK_EXIT_STATUS, &step.status) !=
		    ESPANK_SUCCESS ||
	    !step.status)
		return;
	if (!is_script) {
		_tell_of_exit(spank, config);
		return;
	}
	step.script_gone = _was_lost_by_slurm(spank);
	step.script_unbegun = !step.script_gone && _has_not_begun();
	_hold(config);
}

void node_end(const struct config *config)
{
	if (step.kind != WIRE_KIND_BATCH || !script || !has_mode || has_asked ||
	    step.mode.kind == RESUME_OFF || !_has_not_begun())
		return;
	if (script->told)
		step.restart = script->restart;
	step.status = W_EXITCODE(1, 0);
	step.script_unbegun = true;
	_hold(config);
}
