#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slurm/spank.h>

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

static bool _expand(char *path, size_t size, const char *pattern)
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

static bool _set_socket(struct config *config, const char *value)
{
	char path[sizeof(config->socket)];

	if (value[0] != '/' || !_expand(path, sizeof(path), value))
		return false;
	memcpy(config->socket, path, sizeof(path));
	return true;
}

static bool _set_hold(struct config *config, const char *value)
{
	unsigned long seconds;
	char *end;

	if (value[0] < '0' || value[0] > '9')
		return false;
	errno = 0;
	seconds = strtoul(value, &end, 10);
	if (errno || *end || seconds > CONFIG_HOLD_MAX_S)
		return false;
	config->hold_s = (unsigned int) seconds;
	return true;
}

void config_read(struct config *config, int ac, char **av)
{
	*config = (struct config){.socket = CONFIG_SOCKET,
				  .hold_s = CONFIG_HOLD_S};
	for (int i = 0; i < ac; i++) {
		if (!strncmp(av[i], "socket=", 7) &&
		    _set_socket(config, av[i] + 7))
			continue;
		if (!strncmp(av[i], "hold=", 5) && _set_hold(config, av[i] + 5))
			continue;
		slurm_error("steward: plugstack.conf: %.128s is not understood "
			    "and left out; use socket=/PATH (%%n: node name) "
			    "and hold=SECONDS (0 to %d)",
			    av[i], CONFIG_HOLD_MAX_S);
	}
}
