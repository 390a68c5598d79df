#include "dial.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "socket_path.h"

int64_t dial_now_ms(void)
{
	struct timespec now;

	/* Cannot fail with these arguments. */
	(void) clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int dial_left_ms(int64_t deadline_ms)
{
	int64_t left = deadline_ms - dial_now_ms();

	return left > 0 ? (int) left : 0;
}

static int _connect(const char *path, int64_t deadline_ms)
{
	int fd;

	while ((fd = socket_enter(path)) < 0 &&
	       (errno == EAGAIN || errno == EINTR) && dial_left_ms(deadline_ms))
		(void) poll(NULL, 0, 10);
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
		if (!dial_left_ms(deadline_ms))
			return false;
		(void) poll(&room, 1, dial_left_ms(deadline_ms));
	}
	return true;
}

int dial_say(const struct config *config, const char *line, size_t len,
	     int64_t deadline_ms)
{
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
