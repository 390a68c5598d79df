#include "requeue.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

#define LINE_MAX_LEN 4096
#define BLANKS	     " \t\r\n"

enum said { NOTHING, YES, NO };

static bool _is(const char *word, const char *option, size_t least)
{
	size_t len = strcspn(word, "=");

	return len >= least && len <= strlen(option) &&
	       !strncmp(word, option, len);
}

/* getopt_long() takes the beginning of a name for the whole. */
static enum said _word(const char *word, enum said before)
{
	if (_is(word, "--no-requeue", sizeof("--no-r") - 1))
		return NO;
	if (_is(word, "--requeue", sizeof("--req") - 1))
		return YES;
	return before;
}

static enum said _line(char *line, enum said before)
{
	char *rest;

	for (char *word = strtok_r(line, BLANKS, &rest); word && word[0] != '#';
	     word = strtok_r(NULL, BLANKS, &rest))
		before = _word(word, before);
	return before;
}

/* Its #SBATCH lines, up to its first command. */
static enum said _script(const char *path)
{
	static const char prefix[] = "#SBATCH";
	enum said said = NOTHING;
	FILE *file = fopen(path, "re");
	char line[LINE_MAX_LEN];

	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, prefix, sizeof(prefix) - 1))
			said = _line(line + sizeof(prefix) - 1, said);
		else if (line[0] != '#' && line[strspn(line, BLANKS)])
			break;
	}
	if (file)
		fclose(file);
	return said;
}

static enum said _command(const struct words *args)
{
	size_t end = optind > 0 ? (size_t) optind : args->count;
	enum said said = NOTHING;

	for (size_t i = 1; i < args->count && i < end; i++)
		said = _word(args->list[i], said);
	if (said == NOTHING && end < args->count)
		said = _script(args->list[end]);
	return said;
}

bool requeue_is_refused(void)
{
	enum said said = getenv("SBATCH_NO_REQUEUE") ? NO : NOTHING;
	struct command command;
	enum said found;

	if (!command_read(&command))
		return said == NO;
	found = _command(&command.args);
	command_free(&command);
	return (found == NOTHING ? said : found) == NO;
}
