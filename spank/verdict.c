/*
 * steward-verdict: what the node's agent knows of the node already, for Slurm's
 * HealthCheckProgram, Prolog and Epilog. No check is run, nothing is waited
 * for: without an answer in time it is as if all were well.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "socket_path.h"
#include "wire.h"

#define SOCKET "/run/steward/agent.sock"
#ifndef LIMIT_MS /* tests have more */
#define LIMIT_MS 15
#endif
#define REFUSED	  1
#define BAD_USAGE 2

struct plan {
	char socket[sizeof(((struct sockaddr_un *) 0)->sun_path)];
	enum wire_severity refuse; /* from here on the exit status is 1 */
};

static const char *const names[] = {[WIRE_NO_SEVERITY] = "",
				    [WIRE_INFO] = "info",
				    [WIRE_SUSPECT] = "suspect",
				    [WIRE_DEGRADED] = "degraded",
				    [WIRE_FATAL] = "fatal"};

static int64_t _now_ms(void)
{
	struct timespec now;

	/* Cannot fail with these arguments. */
	(void) clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Read one line; its length, or 0 when none comes in time. */
static size_t _read_line(int fd, char line[static WIRE_LINE_MAX],
			 int64_t end_ms)
{
	size_t used = 0;
	char *lf = NULL;

	while (!lf && used < WIRE_LINE_MAX) {
		struct pollfd there = {.fd = fd, .events = POLLIN};
		int64_t left_ms = end_ms - _now_ms();
		ssize_t got;

		if (left_ms <= 0)
			return 0;
		if (poll(&there, 1, (int) left_ms) < 0 && errno != EINTR)
			return 0;
		got = recv(fd, line + used, WIRE_LINE_MAX - used, 0);
		if (!got || (got < 0 && errno != EAGAIN && errno != EINTR))
			return 0;
		used += got > 0 ? (size_t) got : 0;
		lf = memchr(line, '\n', used);
	}
	return lf ? (size_t) (lf - line) : 0;
}

/* Ask; what is no answer is WIRE_UNKNOWN, and *why then says why. */
static void _ask(const struct plan *plan, struct wire_answer *answer,
		 const char **why)
{
	int64_t end_ms = _now_ms() + LIMIT_MS;
	char line[WIRE_LINE_MAX];
	int fd = socket_enter(plan->socket);
	size_t len = 0;

	*answer = (struct wire_answer){.verb = WIRE_UNKNOWN};
	*why = "no agent there";
	if (fd < 0)
		return;
	if (send(fd, WIRE_VERDICT, strlen(WIRE_VERDICT), MSG_NOSIGNAL) ==
	    (ssize_t) strlen(WIRE_VERDICT))
		len = _read_line(fd, line, end_ms);
	close(fd);
	*why = "the agent did not answer in time";
	if (!len)
		return;
	wire_parse(line, len, answer);
	*why = "the agent knows nothing yet";
	if (answer->verb == WIRE_FINE || answer->verb == WIRE_BAD ||
	    answer->verb == WIRE_UNKNOWN)
		return;
	*answer = (struct wire_answer){.verb = WIRE_UNKNOWN};
	*why = "the agent's answer is malformed";
}

static bool _read_refuse(struct plan *plan, const char *text)
{
	for (int i = WIRE_SUSPECT; i <= WIRE_FATAL; i++) {
		if (!strcmp(text, names[i])) {
			plan->refuse = (enum wire_severity) i;
			return true;
		}
	}
	return false;
}

static bool _read_options(struct plan *plan, int ac, char **av)
{
	static const struct option options[] = {
		{"socket", required_argument, NULL, 's'},
		{"refuse", required_argument, NULL, 'r'},
		{NULL, 0, NULL, 0}};
	const char *pattern = SOCKET;
	int option;

	while ((option = getopt_long(ac, av, "", options, NULL)) >= 0) {
		if (option == 's')
			pattern = optarg;
		else if (option != 'r' || !_read_refuse(plan, optarg))
			return false;
	}
	return optind == ac && pattern[0] == '/' &&
	       socket_expand(plan->socket, sizeof(plan->socket), pattern);
}

int main(int ac, char **av)
{
	struct plan plan = {.refuse = WIRE_NO_SEVERITY};
	struct wire_answer answer;
	const char *why;

	if (!_read_options(&plan, ac, av)) {
		fprintf(stderr, "usage: steward-verdict [--socket /PATH] "
				"[--refuse suspect|degraded|fatal]\n"
				"%%n in PATH is the node's name\n");
		return BAD_USAGE;
	}
	_ask(&plan, &answer, &why);
	if (answer.verb == WIRE_BAD)
		printf("bad %s %s %s\n", names[answer.severity], answer.check,
		       answer.text);
	else if (answer.verb == WIRE_FINE)
		printf("fine\n");
	else
		printf("unknown: %s\n", why);
	return plan.refuse && answer.severity >= plan.refuse ? REFUSED
							     : EXIT_SUCCESS;
}
