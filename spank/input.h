/*
 * What the step reads, and whether it can be given to it again.
 *
 * A terminal or a device gives on what comes, a file is wound back. Of a pipe
 * or a socket only the kernel knows whether something has gone through it: it
 * sends a signal for each write, and one when the other end is closed.
 */
#ifndef STEWARD_INPUT_H
#define STEWARD_INPUT_H

#include <stdbool.h>
#include <sys/types.h>

struct input {
	bool is_file;
	bool is_stream; /* a pipe or a socket */
	off_t start;
	int waiting; /* bytes that were not read at the start */
};

/* One of the real-time signals, which are queued: one for each event of the
 * stream. Of more than it can queue the kernel tells by SIGIO. */
#define INPUT_SIGNAL 40

/* To be called when the signals are caught. */
void input_watch(struct input *input);

/* Whether it can be read again; `events` counts the signals that came. */
bool input_can_replay(const struct input *input, unsigned int events);

/* Where it stood at the start; false when that cannot be had. */
bool input_rewind(const struct input *input);

/* Be told of no more input: it is known that some came. */
void input_ignore(void);

/* No more signals. */
void input_leave(const struct input *input);

#endif
