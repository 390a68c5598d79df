#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK 65536

/* Read a file of /proc, whose size is not known before, and end it by NUL. */
static char *_read_all(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = NULL;
	ssize_t got = -1;

	*size = 0;
	while (fd >= 0) {
		char *more = realloc(text, *size + CHUNK + 1);

		if (!more) {
			got = -1;
			break;
		}
		text = more;
		got = read(fd, text + *size, CHUNK);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		*size += (size_t) got;
	}
	if (fd >= 0)
		close(fd);
	if (got < 0) {
		free(text);
		return NULL;
	}
	text[*size] = '\0';
	return text;
}

static size_t _count(const char *text, size_t size)
{
	size_t count = 0;

	for (size_t at = 0; at < size; at += strlen(text + at) + 1)
		count++;
	return count;
}

static bool _read_words(const char *path, struct words *words)
{
	size_t size;
	size_t at = 0;

	words->text = _read_all(path, &size);
	if (!words->text)
		return false;
	words->count = _count(words->text, size);
	words->list = calloc(words->count + 1, sizeof(*words->list));
	if (!words->list)
		return false;
	for (size_t i = 0; i < words->count; i++) {
		words->list[i] = words->text + at;
		at += strlen(words->text + at) + 1;
	}
	return true;
}

bool command_read(struct command *command)
{
	*command = (struct command){0};
	if (_read_words("/proc/self/cmdline", &command->args) &&
	    _read_words("/proc/self/environ", &command->env) &&
	    command->args.count)
		return true;
	command_free(command);
	return false;
}

void command_free(struct command *command)
{
	free(command->args.list);
	free(command->args.text);
	free(command->env.list);
	free(command->env.text);
	*command = (struct command){0};
}

/* As getopt_long() takes an option, in `shortest` characters or more. */
static bool _mentions(const struct command *command, size_t program_words,
		      const char *option, size_t shortest)
{
	for (size_t i = 1; i + program_words < command->args.count; i++) {
		const char *arg = command->args.list[i];
		size_t len = strcspn(arg, "=");

		if (len >= shortest && len <= strlen(option) &&
		    !strncmp(arg, option, len))
			return true;
	}
	return false;
}

bool command_mentions_option(const struct command *command,
			     size_t program_words)
{
	return _mentions(command, program_words, "--auto-resume", 3);
}

bool command_mentions_async(const struct command *command)
{
	return _mentions(command, 0, "--async", 4);
}

bool command_wants_pty(const struct command *command)
{
	for (size_t i = 1; i < command->args.count; i++) {
		const char *arg = command->args.list[i];

		if (!strcmp(arg, "--pty") || !strncmp(arg, "--pty=", 6))
			return true;
	}
	return false;
}
