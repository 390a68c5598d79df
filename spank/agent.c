#include "agent.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum step_result { GOING_ON, DECIDED, GIVEN_UP };

struct conversation {
	int fd;
	enum wire_kind kind;
	int64_t end_ms;
	int64_t last_line_ms;
	size_t used;
	char buffer[WIRE_LINE_MAX];
	const char *why;
};

static int64_t _now_ms(void)
{
	struct timespec now;

	/* Cannot fail with these arguments. */
	(void) clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int _left_ms(int64_t deadline_ms)
{
	int64_t left = deadline_ms - _now_ms();

	return left > 0 ? (int) left : 0;
}

/* A unix socket never connects "in progress": it is there, it is not, or its
 * queue is full (EAGAIN), which may pass. */
static int _connect(const char *path, int64_t deadline_ms)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	memcpy(address.sun_path, path, strnlen(path, sizeof(address.sun_path)));
	while (connect(fd, (struct sockaddr *) &address, sizeof(address))) {
		if ((errno != EAGAIN && errno != EINTR) ||
		    !_left_ms(deadline_ms)) {
			close(fd);
			return -1;
		}
		(void) poll(NULL, 0, 10);
	}
	return fd;
}

static bool _send(int fd, const char *line, size_t len, int64_t deadline_ms)
{
	while (len) {
		struct pollfd room = {.fd = fd, .events = POLLOUT};
		ssize_t sent = send(fd, line, len, MSG_NOSIGNAL);

		if (sent > 0) {
			line += sent;
			len -= (size_t) sent;
			continue;
		}
		if (sent < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		if (!_left_ms(deadline_ms))
			return false;
		(void) poll(&room, 1, _left_ms(deadline_ms));
	}
	return true;
}

/* Connect and say one line; the socket, or -1. */
static int _say(const struct config *config, const char *line, size_t len)
{
	int64_t deadline_ms = _now_ms() + AGENT_SEND_MS;
	int fd;

	if (!len)
		return -1;
	fd = _connect(config->socket, deadline_ms);
	if (fd >= 0 && !_send(fd, line, len, deadline_ms)) {
		close(fd);
		return -1;
	}
	return fd;
}

bool agent_tell(const struct config *config, const struct wire_ask *ask)
{
	char line[WIRE_LINE_MAX];
	int fd = _say(config, line, wire_format_opted(ask, line));

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static enum step_result _give_up(struct conversation *talk, const char *why)
{
	talk->why = why;
	return GIVEN_UP;
}

static enum step_result _take_line(struct conversation *talk, size_t len,
				   struct wire_answer *answer)
{
	wire_parse(talk->buffer, len, answer);
	switch (answer->verb) {
	case WIRE_WAIT:
		talk->last_line_ms = _now_ms();
		return GOING_ON;
	case WIRE_REQUEUE:
	case WIRE_STOP:
		return DECIDED;
	case WIRE_RETRY:
		if (talk->kind == WIRE_KIND_STEP)
			return DECIDED;
		break;
	case WIRE_OK:
	case WIRE_FINE:
	case WIRE_UNKNOWN:
	case WIRE_BAD:
	case WIRE_MALFORMED:
		break;
	}
	return _give_up(talk, "the agent's answer is malformed");
}

/* Take every whole line out of the buffer. */
static enum step_result _take_lines(struct conversation *talk,
				    struct wire_answer *answer)
{
	enum step_result result = GOING_ON;
	char *lf;

	while (result == GOING_ON &&
	       (lf = memchr(talk->buffer, '\n', talk->used))) {
		size_t len = (size_t) (lf - talk->buffer);

		result = _take_line(talk, len, answer);
		talk->used -= len + 1;
		memmove(talk->buffer, lf + 1, talk->used);
	}
	if (result == GOING_ON && talk->used == sizeof(talk->buffer))
		return _give_up(talk, "the agent's answer is too long");
	return result;
}

static enum step_result _receive(struct conversation *talk,
				 struct wire_answer *answer)
{
	ssize_t got = recv(talk->fd, talk->buffer + talk->used,
			   sizeof(talk->buffer) - talk->used, 0);

	if (got > 0) {
		talk->used += (size_t) got;
		return _take_lines(talk, answer);
	}
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return GOING_ON;
	return _give_up(talk, "the agent closed the connection");
}

static enum step_result _wait(struct conversation *talk,
			      const struct agent_watch *watch,
			      struct wire_answer *answer)
{
	struct pollfd fds[] = {
		{.fd = talk->fd, .events = POLLIN},
		{.fd = watch ? watch->fd : -1, .events = POLLIN}};
	int64_t silent_ms = talk->last_line_ms + AGENT_SILENCE_MS;

	if (!_left_ms(talk->end_ms))
		return _give_up(talk, "the agent did not decide in time");
	if (!_left_ms(silent_ms))
		return _give_up(talk, "the agent fell silent");
	if (poll(fds, 2,
		 _left_ms(silent_ms < talk->end_ms ? silent_ms
						   : talk->end_ms)) < 0)
		return errno == EINTR ? GOING_ON
				      : _give_up(talk, "poll failed");
	if (fds[1].revents && watch->abandon(watch->arg))
		return _give_up(talk, "told to leave");
	return fds[0].revents ? _receive(talk, answer) : GOING_ON;
}

bool agent_ask(const struct config *config, const struct wire_ask *ask,
	       const struct agent_watch *watch, struct wire_answer *answer,
	       const char **why)
{
	struct conversation talk = {.kind = ask->kind, .why = ""};
	enum step_result result = GOING_ON;
	char line[WIRE_LINE_MAX];

	if (!config->hold_s) {
		*why = "hold=0";
		return false;
	}
	talk.end_ms = _now_ms() + (int64_t) config->hold_s * 1000;
	talk.fd = _say(config, line, wire_format_ask(ask, line));
	talk.last_line_ms = _now_ms();
	if (talk.fd < 0) {
		*why = "no agent there";
		return false;
	}
	while (result == GOING_ON)
		result = _wait(&talk, watch, answer);
	close(talk.fd);
	*why = talk.why;
	return result == DECIDED;
}
