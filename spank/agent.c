#include "agent.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dial.h"

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
		talk->last_line_ms = dial_now_ms();
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

	if (!dial_left_ms(talk->end_ms))
		return _give_up(talk, "the agent did not decide in time");
	if (!dial_left_ms(silent_ms))
		return _give_up(talk, "the agent fell silent");
	if (poll(fds, 2,
		 dial_left_ms(silent_ms < talk->end_ms ? silent_ms
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
	talk.end_ms = dial_now_ms() + (int64_t) config->hold_s * 1000;
	talk.fd = dial_say(config, line, wire_format_ask(ask, line),
			   dial_now_ms() + AGENT_SEND_MS);
	talk.last_line_ms = dial_now_ms();
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
