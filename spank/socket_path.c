#include "socket_path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ROOTS ".root"

/* The node that a daemon or job believes to be on, else this machine. */
static bool _node_name(char *name, size_t size)
{
	const char *given = getenv("SLURMD_NODENAME");
	int len;

	if (given && given[0]) {
		len = snprintf(name, size, "%s", given);
		return len > 0 && (size_t) len < size;
	}
	if (gethostname(name, size))
		return false;
	name[size - 1] = '\0';
	name[strcspn(name, ".")] = '\0';
	return name[0] != '\0';
}

bool socket_expand(char *path, size_t size, const char *pattern)
{
	const char *mark = strstr(pattern, "%n");
	char node[HOST_NAME_MAX + 1];
	int len;

	if (!mark) {
		len = snprintf(path, size, "%s", pattern);
	} else {
		if (!_node_name(node, sizeof(node)))
			return false;
		len = snprintf(path, size, "%.*s%s%s", (int) (mark - pattern),
			       pattern, node, mark + 2);
	}
	return len > 0 && (size_t) len < size;
}

/* A unix socket never connects "in progress": it is there, it is not, or its
 * queue is full (EAGAIN), which may pass. */
static int _connect(const char *path, const char *suffix)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int len = snprintf(address.sun_path, sizeof(address.sun_path), "%s%s",
			   path, suffix);
	int fd, error;

	if (len <= 0 || (size_t) len >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 ||
	    !connect(fd, (struct sockaddr *) &address, sizeof(address)))
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

int socket_enter(const char *path)
{
	int fd = geteuid() ? -1 : _connect(path, ROOTS);

	return fd < 0 ? _connect(path, "") : fd;
}
