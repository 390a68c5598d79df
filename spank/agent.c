#include "agent.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dial.h"

enum step_result { GOING_ON, DECIDED, GIVEN_UP };

struct conversation {
	const struct config *config;
	const struct wire_ask *ask;
	int fd;		/* -1: the agent is not there */
	bool has_met;	/* but it has been */
	int redials;	/* that are left */
	int64_t due_ms; /* the next line, or else the next dial */
	int64_t end_ms;
	size_t used;
	char buffer[WIRE_LINE_MAX];
	const char *why;
};

static enum step_result _give_up(struct conversation *talk, const char *why)
{
	talk->why = why;
	return GIVEN_UP;
}

static enum step_result _weigh(struct conversation *talk,
			       const struct wire_answer *answer)
{
	switch (answer->verb) {
	case WIRE_WAIT:
		talk->has_met = true;
		talk->due_ms = dial_now_ms() + AGENT_SILENCE_MS;
		return GOING_ON;
	case WIRE_REQUEUE:
	case WIRE_STOP:
		return DECIDED;
	case WIRE_RETRY:
		if (talk->ask->kind == WIRE_KIND_STEP)
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

	while (result == GOING_ON &&
	       wire_take_line(talk->buffer, &talk->used, answer))
		result = _weigh(talk, answer);
	if (result == GOING_ON && talk->used == sizeof(talk->buffer))
		return _give_up(talk, "the agent's answer is too long");
	return result;
}

static enum step_result _be_alone(struct conversation *talk, const char *why)
{
	if (!talk->has_met || !talk->redials)
		return _give_up(talk, why);
	talk->redials--;
	talk->due_ms = dial_now_ms() + AGENT_REDIAL_MS;
	return GOING_ON;
}

static enum step_result _dial(struct conversation *talk)
{
	char line[WIRE_LINE_MAX];

	talk->used = 0;
	talk->fd = dial_say(talk->config, line,
			    wire_format_ask_of(talk->ask, line),
			    dial_now_ms() + AGENT_SEND_MS);
	if (talk->fd < 0)
		return _be_alone(talk, "no agent there");
	talk->due_ms = dial_now_ms() + AGENT_SILENCE_MS;
	return GOING_ON;
}

static void _hang_up(struct conversation *talk)
{
	if (talk->fd >= 0)
		close(talk->fd);
	talk->fd = -1;
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
	_hang_up(talk);
	return _be_alone(talk, "the agent closed the connection");
}

static enum step_result _wait(struct conversation *talk,
			      const struct agent_watch *watch,
			      struct wire_answer *answer)
{
	struct pollfd fds[] = {
		{.fd = talk->fd, .events = POLLIN},
		{.fd = watch ? watch->fd : -1, .events = POLLIN}};

	if (!dial_left_ms(talk->end_ms))
		return _give_up(talk, "the agent did not decide in time");
	if (!dial_left_ms(talk->due_ms))
		return talk->fd < 0 ? _dial(talk)
				    : _give_up(talk, "the agent fell silent");
	if (poll(fds, 2,
		 dial_left_ms(talk->due_ms < talk->end_ms ? talk->due_ms
							  : talk->end_ms)) < 0)
		return errno == EINTR ? GOING_ON
				      : _give_up(talk, "poll failed");
	if (fds[1].revents && watch->abandon(watch->arg))
		return _give_up(talk, "told to leave");
	return fds[0].revents ? _receive(talk, answer) : GOING_ON;
}

bool agent_ask(const struct config *config, const struct wire_ask *ask,
	       bool has_met, const struct agent_watch *watch,
	       struct wire_answer *answer, const char **why)
{
	struct conversation talk = {.config = config,
				    .ask = ask,
				    .has_met = has_met,
				    .redials = AGENT_REDIALS,
				    .why = ""};
	enum step_result result;

	if (!config->hold_s) {
		*why = "hold=0";
		return false;
	}
	talk.end_ms = dial_now_ms() + (int64_t) config->hold_s * 1000;
	result = _dial(&talk);
	while (result == GOING_ON)
		result = _wait(&talk, watch, answer);
	_hang_up(&talk);
	*why = talk.why;
	return result == DECIDED;
}
