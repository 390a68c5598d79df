/*
 * Where the node's agent listens.
 */
#ifndef STEWARD_SOCKET_PATH_H
#define STEWARD_SOCKET_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Write pattern to path with "%n" replaced by the name of the node that this
 * process is on (SLURMD_NODENAME, else the machine's); false when it does not
 * fit. */
bool socket_expand(char *path, size_t size, const char *pattern);

/* Connect to the agent at path without waiting. Root goes in by an entrance of
 * its own, where there is one: any user can fill the queue of the other. -1
 * and errno when neither lets us in; EAGAIN may pass. */
int socket_enter(const char *path);

#endif
