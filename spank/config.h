/*
 * What the site wrote after the plugin's path in plugstack.conf.
 *
 *   optional /usr/lib/steward/steward.so socket=/run/steward/agent.sock
 * hold=80 quiet=0
 */
#ifndef STEWARD_CONFIG_H
#define STEWARD_CONFIG_H

#include <stdbool.h>

#include <sys/un.h>

#define CONFIG_SOCKET	  "/run/steward/agent.sock"
#define CONFIG_HOLD_S	  80
#define CONFIG_HOLD_MAX_S 3600

#define CONFIG_SOCKET_ROOM sizeof(((struct sockaddr_un *) 0)->sun_path)

struct config {
	/* Path of the agent's socket, "%n" already replaced by the node. */
	char socket[CONFIG_SOCKET_ROOM];
	/* Longest time, in seconds, that one end of a script or step waits for
	 * the agent's decision. 0: never ask. */
	unsigned int hold_s;
};

/*
 * Read the arguments into *config. A word that makes no sense is reported in
 * the log, once each, and the default stands: a typing error of the site must
 * not cost a user his job.
 */
void config_read(struct config *config, int ac, char **av);

#define CONFIG_PATH_ROOM (CONFIG_SOCKET_ROOM + 16)

/* The path of a file that the agent keeps beside its socket; false when there
 * is no room for it. */
bool config_beside(const struct config *config, const char *name,
		   char path[static CONFIG_PATH_ROOM]);

#endif
