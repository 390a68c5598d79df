#include "notice.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dial.h"

/* Read lines up to the first one that is not WIRE_WAIT; false when none came
 * in time. */
static bool _read_answer(int fd, struct wire_answer *answer,
			 int64_t deadline_ms)
{
	char buffer[WIRE_LINE_MAX];
	size_t used = 0;

	while (used < sizeof(buffer) && dial_left_ms(deadline_ms)) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		ssize_t got = recv(fd, buffer + used, sizeof(buffer) - used, 0);

		if (got > 0) {
			used += (size_t) got;
			while (wire_take_line(buffer, &used, answer))
				if (answer->verb != WIRE_WAIT)
					return true;
			continue;
		}
		if (!got || (errno != EAGAIN && errno != EINTR))
			return false;
		(void) poll(&ready, 1, dial_left_ms(deadline_ms));
	}
	return false;
}

/* Say one line and read the answer; false when none came in time. */
static bool _ask(const struct config *config, const struct wire_ask *ask,
		 struct wire_answer *answer, int64_t dial_by_ms,
		 int64_t answer_by_ms)
{
	char line[WIRE_LINE_MAX];
	int fd = dial_say(config, line, wire_format_opted(ask, line),
			  dial_by_ms);
	bool is_told = fd >= 0 && _read_answer(fd, answer, answer_by_ms);

	if (fd >= 0)
		close(fd);
	return is_told;
}

bool notice_opted(const struct config *config, const struct wire_ask *ask,
		  struct wire_answer *answer)
{
	static const char no_facts[] = "steward/1 ok";
	int64_t now_ms = dial_now_ms();
	bool is_first = !ask->restart && ask->attempt == 1 && !ask->elastic;
	int64_t end_ms = now_ms + (is_first ? NOTICE_OPTED_MS : NOTICE_PAST_MS);
	int64_t dial_ms = ask->elastic ? end_ms : now_ms + NOTICE_OPTED_MS;
	bool is_told = _ask(config, ask, answer, dial_ms, end_ms);

	while (!is_told && ask->elastic && dial_left_ms(end_ms)) {
		(void) poll(NULL, 0, NOTICE_REDIAL_MS);
		is_told = _ask(config, ask, answer, dial_ms, end_ms);
	}
	if (is_told && answer->verb == WIRE_OK)
		return true;
	wire_parse(no_facts, sizeof(no_facts) - 1, answer);
	return false;
}

static void _tell(const struct config *config, const char *line, size_t len)
{
	int fd = dial_say(config, line, len, dial_now_ms() + NOTICE_MS);

	if (fd >= 0)
		close(fd);
}

void notice_exit(const struct config *config, const struct wire_ask *ask,
		 uint32_t task)
{
	char line[WIRE_LINE_MAX];

	_tell(config, line, wire_format_exit(ask, task, line));
}

void notice_ended(const struct config *config, const struct wire_ask *ask)
{
	char line[WIRE_LINE_MAX];

	_tell(config, line, wire_format_ended(ask, line));
}

void notice_log(const struct config *config, const struct wire_ask *ask,
		const char *path, uint64_t length)
{
	char line[WIRE_LINE_MAX];

	_tell(config, line, wire_format_log(ask, path, length, line));
}
