#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"

#define FAILURE	     "failed"
#define OWN	     "own"
#define LINE_MAX_LEN (RESUME_TEXT_MAX + 16)
/* A pipe's worth: a heterogeneous step says its lines once a component. */
#define READ_MAX 65536

static int report_fd = -1;
static bool is_opted_in;
static bool supervised;

void report_adopt(void)
{
	const char *mark = getenv(REPORT_ENV);
	struct stat status;
	int pid, fd;

	if (!mark)
		return;
	/* A task that starts an srun of its own must not pass for us, nor make
	 * us write into a file of its. */
	if (sscanf(mark, "%d %d", &pid, &fd) == 2 && pid == (int) getppid()) {
		supervised = true;
		if (!fstat(fd, &status) && S_ISFIFO(status.st_mode) &&
		    !fcntl(fd, F_SETFD, FD_CLOEXEC))
			report_fd = fd;
	}
	if (unsetenv(REPORT_ENV))
		slurm_error("steward: cannot unset %s: %s", REPORT_ENV,
			    strerror(errno));
}

bool report_is_supervised(void)
{
	return supervised;
}

static void _say(const char *line, int len)
{
	if (report_fd >= 0 && len > 0 && len < LINE_MAX_LEN)
		(void) !write(report_fd, line, (size_t) len);
}

void report_mode(const struct resume_mode *mode)
{
	char line[LINE_MAX_LEN];

	is_opted_in = mode->kind != RESUME_OFF;
	_say(line,
	     snprintf(line, sizeof(line), "mode %s\n", resume_text(mode)));
}

/* A job of one node does not outlive it. */
static bool _may_lose_nodes(void)
{
	const char *count = getenv("SLURM_JOB_NUM_NODES");

	return supervised && is_opted_in && count && atoi(count) > 1;
}

static void _report_nodes(uint32_t job, uint32_t step)
{
	static char line[NODES_MAX + 8];
	static char nodes[NODES_MAX];
	int len = 0;

	if (nodes_of_step(job, step, nodes))
		len = snprintf(line, sizeof(line), "nodes %s\n", nodes);
	if (report_fd >= 0 && len > 0)
		(void) !write(report_fd, line, (size_t) len);
}

/* The words of the program that is to run come last, and may have an option of
 * that name. */
static bool _is_own(spank_t spank)
{
	struct command command;
	char **words;
	int count;
	bool is_own = false;

	if (spank_get_item(spank, S_JOB_ARGV, &count, &words) ==
		    ESPANK_SUCCESS &&
	    count > 0 && command_read(&command)) {
		is_own = command_mentions_option(&command, (size_t) count);
		command_free(&command);
	}
	return is_own;
}

void report_step(spank_t spank)
{
	char line[LINE_MAX_LEN];
	uint32_t job, step;

	if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS)
		return;
	_say(line, snprintf(line, sizeof(line),
			    "step %" PRIu32 " %" PRIu32 "\n", job, step));
	if (supervised && is_opted_in && _is_own(spank))
		_say(OWN "\n", sizeof(OWN));
	if (_may_lose_nodes())
		_report_nodes(job, step);
}

void report_failure(int fd)
{
	(void) !write(fd, FAILURE "\n", sizeof(FAILURE));
}

static void _read_line(const char *line, struct report *report)
{
	if (!strncmp(line, "mode ", 5))
		(void) resume_parse(line + 5, &report->mode, NULL);
	else if (sscanf(line, "step %" SCNu32 " %" SCNu32, &report->job,
			&report->step) == 2)
		report->has_step = true;
	else if (!strncmp(line, "nodes ", 6))
		(void) !snprintf(report->nodes, sizeof(report->nodes), "%s",
				 line + 6);
	else if (!strcmp(line, OWN))
		report->own = true;
	else if (!strcmp(line, FAILURE))
		report->executed = false;
}

void report_read(int fd, struct report *report)
{
	static char text[READ_MAX];
	ssize_t got = -1;
	char *rest;

	*report = (struct report){.executed = true};
	/* Something that the attempt has left behind may hold the other end. */
	if (!fcntl(fd, F_SETFL, O_NONBLOCK))
		got = read(fd, text, sizeof(text) - 1);
	text[got > 0 ? got : 0] = '\0';
	for (char *line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest))
		_read_line(line, report);
}
