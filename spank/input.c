#include "input.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool _set_async(bool on)
{
	int flags = fcntl(STDIN_FILENO, F_GETFL);

	if (flags < 0)
		return false;
	flags = on ? flags | O_ASYNC : flags & ~O_ASYNC;
	return !fcntl(STDIN_FILENO, F_SETFL, flags);
}

/* Bytes that were not read yet; -1 where the kernel does not say. */
static int _waiting(void)
{
	int bytes;

	return ioctl(STDIN_FILENO, FIONREAD, &bytes) ? -1 : bytes;
}

static bool _watch_stream(void)
{
	return !fcntl(STDIN_FILENO, F_SETOWN, getpid()) &&
	       !fcntl(STDIN_FILENO, F_SETSIG, INPUT_SIGNAL) && _set_async(true);
}

void input_watch(struct input *input)
{
	struct stat status;

	*input = (struct input){0};
	if (fstat(STDIN_FILENO, &status) || S_ISCHR(status.st_mode))
		return;
	input->is_file = S_ISREG(status.st_mode);
	input->start = input->is_file ? lseek(STDIN_FILENO, 0, SEEK_CUR) : 0;
	input->is_stream = !input->is_file;
	input->waiting = input->is_stream && _watch_stream() ? _waiting() : -1;
}

static bool _is_closed(void)
{
	struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&ready, 1, 0) > 0 && ready.revents & POLLHUP;
}

/* What lay there still does, and nothing came since: the one event that may
 * have been is the end of who could write. */
static bool _is_untouched(const struct input *input, unsigned int events)
{
	return input->waiting >= 0 && _waiting() == input->waiting &&
	       (!events || (events == 1 && _is_closed()));
}

bool input_can_replay(const struct input *input, unsigned int events)
{
	if (input->is_stream)
		return _is_untouched(input, events);
	return input->start >= 0;
}

bool input_rewind(const struct input *input)
{
	return !input->is_file ||
	       lseek(STDIN_FILENO, input->start, SEEK_SET) == input->start;
}

void input_ignore(void)
{
	(void) _set_async(false);
}

void input_leave(const struct input *input)
{
	if (input->is_stream)
		input_ignore();
}
