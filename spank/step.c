#include "step.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "attempt.h"
#include "dead_step.h"
#include "exclude.h"
#include "input.h"
#include "nodes.h"
#include "notice.h"
#include "output.h"
#include "relay.h"
#include "say.h"
#include "submit.h"

struct supervisor {
	const struct config *config;
	struct command command;
	struct relay relay;
	struct input input;
	struct wire_ask ask;
	struct wire_answer answer;
	char exclude[WIRE_LINE_MAX];
	bool lost_node; /* srun itself took the attempt for a success */
	char nodes[WIRE_LINE_MAX]; /* of the attempt; empty: not known */
};

#define LOST_NODE_STATUS (1 << 8)

static uint32_t _number(const char *name)
{
	const char *text = getenv(name);

	return text ? (uint32_t) strtoul(text, NULL, 10) : 0;
}

/* End the way the child has ended. */
static void _leave(int status)
{
	struct rlimit no_core = {0};
	sigset_t none;

	if (WIFSIGNALED(status)) {
		/* The child has dumped core already, if that is wanted. */
		(void) setrlimit(RLIMIT_CORE, &no_core);
		(void) signal(WTERMSIG(status), SIG_DFL);
		sigemptyset(&none);
		(void) sigprocmask(SIG_SETMASK, &none, NULL);
		(void) raise(WTERMSIG(status));
		_exit(128 + WTERMSIG(status));
	}
	_exit(WEXITSTATUS(status));
}

static int _wait_for(struct relay *relay, const struct input *input,
		     pid_t child)
{
	struct pollfd ready = {.fd = relay->fd, .events = POLLIN};
	int status;

	for (;;) {
		pid_t ended;

		(void) poll(&ready, 1, -1);
		relay_forward(relay, child);
		if (relay->input > 1)
			input_leave(input); /* all is known */
		if (!relay->child_changed)
			continue;
		relay->child_changed = false;
		ended = waitpid(child, &status, WNOHANG);
		if (ended == child)
			return status;
	}
}

/* Tasks that died with their node have done no work, whatever srun says. */
static bool _has_lost_node(const struct report *report)
{
	char lost[256];

	if (report->mode.kind == RESUME_OFF || !report->nodes[0] ||
	    !nodes_lost(report->job, report->nodes, lost, sizeof(lost)))
		return false;
	say_error("step %" PRIu32 ".%" PRIu32 " lost node %s: it has "
		  "failed, though srun returned 0",
		  report->job, report->step, lost);
	return true;
}

static time_t _now(void)
{
	struct timespec now = {0};

	(void) clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec;
}

/* Where the attempt ran, and since when: a fault of another node, or of
 * another time, is not what ended it. */
static void _note_reach(struct supervisor *self, const struct report *report,
			time_t began)
{
	if (snprintf(self->nodes, sizeof(self->nodes), "%s", report->nodes) >=
	    (int) sizeof(self->nodes))
		self->nodes[0] = '\0';
	self->ask.nodes = self->nodes;
	self->ask.age = (unsigned int) (_now() - began + 1);
}

/* An srun that does not wait ends well before Slurm would tell us its step.
 * No srun will ask about that step: the script's failure may be its. */
static void _tell_detached(struct supervisor *self)
{
	struct wire_answer answer;

	self->ask.detached = true;
	if (!notice_opted(self->config, &self->ask, &answer))
		slurm_debug("steward: no agent takes note that job %" PRIu32
			    " has a step that no srun waits for",
			    self->ask.job);
}

static void _tell_of_success(struct supervisor *self, bool has_step)
{
	if (!has_step && command_mentions_async(&self->command))
		_tell_detached(self);
	else
		notice_ended(self->config, &self->ask);
}

/* One attempt from start to end; false when there was none. */
static bool _attempt(struct supervisor *self)
{
	struct attempt attempt;
	struct report report;
	time_t began = _now();
	int status;
	struct attempt_setup setup = {
		.number = self->ask.attempt,
		.exclude = self->exclude,
		.own_group = self->relay.own_group,
		.mask = &self->relay.mask,
		.ignored = &self->relay.ignored,
	};

	output_begin(self->ask.logs);
	if (!attempt_start(&self->command, &setup, &attempt))
		return false;
	relay_open(&self->relay);
	status = _wait_for(&self->relay, &self->input, attempt.pid);
	relay_close();
	attempt_finish(&attempt, &report);
	output_end(self->ask.logs);
	if (!report.executed)
		return false;
	say_mode(&report.mode);
	_note_reach(self, &report, began);
	self->lost_node = !status && _has_lost_node(&report);
	self->ask.status = self->lost_node ? LOST_NODE_STATUS : status;
	self->ask.mode = report.mode;
	self->ask.own = report.own;
	self->ask.job = report.has_step ? report.job : _number("SLURM_JOB_ID");
	self->ask.step = report.has_step ? report.step : WIRE_STEP_UNKNOWN;
	if (!self->ask.status && report.mode.kind != RESUME_OFF)
		_tell_of_success(self, report.has_step);
	return true;
}

static bool _told_to_end(void *arg)
{
	struct relay *relay = arg;

	relay_forward(relay, 0);
	return relay->told_to_end;
}

static bool _may_go_on(struct supervisor *self)
{
	struct agent_watch watch = {.fd = self->relay.fd,
				    .abandon = _told_to_end,
				    .arg = &self->relay};
	const char *why;
	bool decided;

	/* What came while the signals were kept out. */
	relay_open(&self->relay);
	relay_close();
	relay_forward(&self->relay, 0);
	self->ask.replay = input_can_replay(&self->input, self->relay.input);
	if (!self->ask.status || self->ask.mode.kind == RESUME_OFF ||
	    _told_to_end(&self->relay))
		return false;
	relay_open(&self->relay);
	decided = agent_ask(self->config, &self->ask, self->ask.attempt > 1,
			    &watch, &self->answer, &why);
	relay_close();
	if (!decided) {
		slurm_debug("steward: step not run again: %s", why);
		if (self->lost_node)
			self->ask.status = 0;
	}
	return decided && self->answer.verb == WIRE_RETRY;
}

static bool _prepare_next(struct supervisor *self)
{
	if (self->ask.attempt >= STEP_ATTEMPTS_MAX)
		return false;
	if (!input_can_replay(&self->input, self->relay.input) ||
	    !input_rewind(&self->input)) {
		say_error("step not run again: what came through "
			  "its standard input is gone; let it read a file "
			  "or /dev/null");
		return false;
	}
	self->ask.attempt++;
	exclude_add(self->exclude, self->answer.exclude);
	say_info("step failed, running it again (attempt %u)%s%s",
		 self->ask.attempt, self->exclude[0] ? " without " : "",
		 self->exclude);
	return true;
}

/* What a node that was left out has left behind is not to keep the script's
 * next srun from starting. */
static void _clear_away(const struct supervisor *self)
{
	if (self->exclude[0])
		dead_step_end(self->ask.job);
}

static void _run(struct supervisor *self)
{
	while (_attempt(self)) {
		bool goes_on = _may_go_on(self) && _prepare_next(self);

		_clear_away(self);
		if (!goes_on) {
			input_leave(&self->input);
			_leave(self->ask.status);
		}
	}
	/* A step that has run once ends as it ended, whatever failed since. */
	if (self->ask.attempt > 1) {
		say_error("no srun could be started for attempt %u; "
			  "the step ends as it ended before",
			  self->ask.attempt);
		input_leave(&self->input);
		_leave(self->ask.status);
	}
}

static bool _is_on(const char *variable)
{
	const char *mode = getenv(variable);

	return mode && mode[0] != '0';
}

/* The mode that the job or the user's environment brings along; an option may
 * yet say otherwise. */
static bool _may_be_opted_in(const struct command *command)
{
	return _is_on(SUBMIT_ENV_MODE) || _is_on(SUBMIT_ENV_OPTION) ||
	       command_mentions_option(command, 0);
}

static void _supervise(struct supervisor *self)
{
	if (relay_begin(&self->relay)) {
		input_watch(&self->input);
		_run(self);
		input_leave(&self->input);
		relay_end(&self->relay);
	}
	say_error("no second srun could be started; the step runs "
		  "without supervision");
}

void step_supervise(const struct config *config)
{
	struct supervisor self = {.config = config};

	if (!getenv("SLURM_JOB_ID") || report_is_supervised() ||
	    !command_read(&self.command))
		return;
	self.ask = (struct wire_ask){
		.kind = WIRE_KIND_STEP,
		.uid = getuid(),
		.attempt = 1,
		.restart = _number("SLURM_RESTART_COUNT"),
	};
	if (_may_be_opted_in(&self.command) &&
	    !command_wants_pty(&self.command))
		_supervise(&self);
	command_free(&self.command);
}
