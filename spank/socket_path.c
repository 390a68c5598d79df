#include "socket_path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
