/*
 * The agent's unix socket: connect and say one line, by a deadline.
 */
#ifndef STEWARD_DIAL_H
#define STEWARD_DIAL_H

#include <stddef.h>
#include <stdint.h>

#include "config.h"

/* Of a clock that cannot be set. */
int64_t dial_now_ms(void);

/* Until then, for poll(2); 0 when it is over. */
int dial_left_ms(int64_t deadline_ms);

/* Connect and say one line; the socket, or -1 when that could not be done in
 * time, or there is no line. */
int dial_say(const struct config *config, const char *line, size_t len,
	     int64_t deadline_ms);

#endif
