/*
 * This process's own command, as the kernel has it: not what srun has made of
 * its arguments and environment since.
 */
#ifndef STEWARD_COMMAND_H
#define STEWARD_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

struct words {
	char *text;  /* one block, NUL after each word */
	char **list; /* pointers into it, NULL at the end */
	size_t count;
};

struct command {
	struct words args;
	struct words env;
};

/* False, with nothing to free, when /proc does not tell. */
bool command_read(struct command *command);
void command_free(struct command *command);

/* True when a word could be srun's --auto-resume, whole or shortened as
 * getopt_long() lets it be. The last `program_words` are the user's program and
 * its own; while their number is not known, it may as well be one of them. */
bool command_mentions_option(const struct command *command,
			     size_t program_words);

/* True when a word could be srun's --async, whole or shortened, by which srun
 * does not wait for its step. It may as well be one of the user's program. */
bool command_mentions_async(const struct command *command);

/* True when the user wants a terminal inside the step. */
bool command_wants_pty(const struct command *command);

#endif
