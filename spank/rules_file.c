#include "rules_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "say.h"
#include "sbatch_words.h"

#define VARIABLE "HYPERPOD_HANG_RULES"
#define EXPORT	 "--export"
/* As much as the agent reads. */
#define FILE_MAX 65536

/* The value of the variable in one of sbatch's words; NULL: it has none. */
static const char *_assigned(const char *word)
{
	for (const char *at = word; (at = strstr(at, VARIABLE "=")); at++)
		if (at == word || at[-1] == ',' || at[-1] == '=')
			return at + sizeof(VARIABLE "=") - 1;
	return NULL;
}

/* --export is given as one word or as two; the last one counts. */
static bool _is_exported(const struct sbatch_words *words, char *path,
			 size_t size)
{
	const char *found = NULL;

	for (size_t i = 0; i < words->count; i++) {
		const char *word = words->list[i];

		if (!sbatch_word_is(word, EXPORT, sizeof(EXPORT) - 1))
			continue;
		if (!strchr(word, '=') && i + 1 < words->count)
			word = words->list[++i];
		found = _assigned(word);
	}
	if (found)
		snprintf(path, size, "%.*s", (int) strcspn(found, ","), found);
	return found != NULL;
}

static bool _is_named(char *path, size_t size)
{
	const char *inherited = getenv(VARIABLE);
	struct sbatch_words words;
	bool found = false;

	if (sbatch_words_read(&words)) {
		found = _is_exported(&words, path, size);
		sbatch_words_free(&words);
	}
	if (!found && inherited)
		snprintf(path, size, "%s", inherited);
	return (found || inherited) && *path;
}

/* Why the open file is of no use; NULL: it may be. */
static const char *_fault_in(int file)
{
	static char text[FILE_MAX + 1];
	struct stat known;
	size_t len = 0;
	ssize_t got;

	if (fstat(file, &known) || !S_ISREG(known.st_mode))
		return "it is no file";
	while (len < FILE_MAX && (got = read(file, text + len, FILE_MAX - len)))
		if (got < 0)
			return strerror(errno);
		else
			len += (size_t) got;
	text[len] = '\0';
	if (text[strspn(text, " \t\r\n")] != '{')
		return "it is no JSON object";
	return strstr(text, "\"enabled\"") ? NULL
					   : "it lacks \"enabled\": true";
}

void rules_file_show(void)
{
	char path[PATH_MAX] = "";
	const char *fault;
	int file;

	if (strcmp(program_invocation_short_name, "sbatch") ||
	    !_is_named(path, sizeof(path)))
		return;
	/* a FIFO must not hold the submission up */
	file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	fault = *path != '/' ? "its path must begin with /"
		: file < 0   ? strerror(errno)
			     : _fault_in(file);
	if (fault)
		say_info(VARIABLE "=%.200s: %s (on this host): the job's "
				  "output is not watched by it",
			 path, fault);
	if (file >= 0)
		close(file);
}
