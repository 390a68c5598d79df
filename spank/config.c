#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slurm/spank.h>

#include "say.h"
#include "socket_path.h"

static bool _set_socket(struct config *config, const char *value)
{
	char path[sizeof(config->socket)];

	if (value[0] != '/' || !socket_expand(path, sizeof(path), value))
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
	say_site(false);
	*config = (struct config){.socket = CONFIG_SOCKET,
				  .hold_s = CONFIG_HOLD_S};
	for (int i = 0; i < ac; i++) {
		if (!strncmp(av[i], "socket=", 7) &&
		    _set_socket(config, av[i] + 7))
			continue;
		if (!strncmp(av[i], "hold=", 5) && _set_hold(config, av[i] + 5))
			continue;
		if (!strcmp(av[i], "quiet=0") || !strcmp(av[i], "quiet=1")) {
			say_site(av[i][6] == '1');
			continue;
		}
		slurm_error("steward: plugstack.conf: %.128s is not understood "
			    "and left out; use socket=/PATH (%%n: node name)"
			    ", hold=SECONDS (0 to %d) and quiet=0|1",
			    av[i], CONFIG_HOLD_MAX_S);
	}
}

bool config_beside(const struct config *config, const char *name,
		   char path[static CONFIG_PATH_ROOM])
{
	const char *slash = strrchr(config->socket, '/');
	int len = snprintf(path, CONFIG_PATH_ROOM, "%.*s/%s",
			   slash ? (int) (slash - config->socket) : 0,
			   config->socket, name);

	return slash && len > 0 && (size_t) len < CONFIG_PATH_ROOM;
}
