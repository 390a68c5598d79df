#include "output.h"

#include <sys/stat.h>
#include <unistd.h>

bool output_path(char *path, size_t size, uint64_t *length)
{
	struct stat status;
	ssize_t len;

	if (fstat(STDOUT_FILENO, &status) || !S_ISREG(status.st_mode) ||
	    !status.st_nlink)
		return false;
	len = readlink("/proc/self/fd/1", path, size);
	if (len <= 0 || (size_t) len >= size || path[0] != '/')
		return false;
	path[len] = '\0';
	*length = (uint64_t) status.st_size;
	return true;
}

static bool _is_file(int fd, struct stat *status)
{
	return !fstat(fd, status) && S_ISREG(status->st_mode);
}

void output_begin(struct wire_log logs[WIRE_LOGS])
{
	static const int fds[WIRE_LOGS] = {STDOUT_FILENO, STDERR_FILENO};
	struct stat status;

	for (int i = 0; i < WIRE_LOGS; i++) {
		uint64_t size = 0, inode = 0;

		if (_is_file(fds[i], &status)) {
			inode = (uint64_t) status.st_ino;
			size = (uint64_t) status.st_size;
		}
		logs[i] = (struct wire_log){.fd = fds[i],
					    .inode = inode,
					    .begin = size,
					    .end = size};
	}
}

void output_end(struct wire_log logs[WIRE_LOGS])
{
	struct stat status;

	for (int i = 0; i < WIRE_LOGS; i++) {
		if (_is_file(logs[i].fd, &status) &&
		    (uint64_t) status.st_ino == logs[i].inode)
			logs[i].end = (uint64_t) status.st_size;
	}
}
