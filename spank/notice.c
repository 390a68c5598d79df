#include "notice.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dial.h"

/* Read one line without its LF; its length, or -1. */
static ssize_t _read_line(int fd, char line[static WIRE_LINE_MAX],
			  int64_t deadline_ms)
{
	size_t used = 0;

	while (used < WIRE_LINE_MAX && dial_left_ms(deadline_ms)) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		ssize_t got = recv(fd, line + used, WIRE_LINE_MAX - used, 0);
		const char *lf;

		if (got > 0) {
			used += (size_t) got;
			lf = memchr(line, '\n', used);
			if (lf)
				return lf - line;
			continue;
		}
		if (!got || (errno != EAGAIN && errno != EINTR))
			return -1;
		(void) poll(&ready, 1, dial_left_ms(deadline_ms));
	}
	return -1;
}

/* Say one line and read the answer's; its length, or -1. */
static ssize_t _ask(const struct config *config, const struct wire_ask *ask,
		    char line[static WIRE_LINE_MAX], int64_t dial_by_ms,
		    int64_t answer_by_ms)
{
	int fd = dial_say(config, line, wire_format_opted(ask, line),
			  dial_by_ms);
	ssize_t len = fd < 0 ? -1 : _read_line(fd, line, answer_by_ms);

	if (fd >= 0)
		close(fd);
	return len;
}

bool notice_opted(const struct config *config, const struct wire_ask *ask,
		  struct wire_answer *answer)
{
	static const char no_facts[] = "steward/1 ok";
	int64_t now_ms = dial_now_ms();
	bool is_first = !ask->restart && ask->attempt == 1 && !ask->elastic;
	int64_t end_ms = now_ms + (is_first ? NOTICE_OPTED_MS : NOTICE_PAST_MS);
	int64_t dial_ms = ask->elastic ? end_ms : now_ms + NOTICE_OPTED_MS;
	char line[WIRE_LINE_MAX];
	ssize_t len = _ask(config, ask, line, dial_ms, end_ms);

	while (len < 0 && ask->elastic && dial_left_ms(end_ms)) {
		(void) poll(NULL, 0, NOTICE_REDIAL_MS);
		len = _ask(config, ask, line, dial_ms, end_ms);
	}
	if (len >= 0)
		wire_parse(line, (size_t) len, answer);
	if (len >= 0 && answer->verb == WIRE_OK)
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

void notice_log(const struct config *config, const struct wire_ask *ask,
		const char *path, uint64_t length)
{
	char line[WIRE_LINE_MAX];

	_tell(config, line, wire_format_log(ask, path, length, line));
}
