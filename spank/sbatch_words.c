#include "sbatch_words.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

#define LINE_MAX_LEN 4096
#define BLANKS	     " \t\r\n"

bool sbatch_word_is(const char *word, const char *option, size_t least)
{
	size_t len = strcspn(word, "=");

	return len >= least && len <= strlen(option) &&
	       !strncmp(word, option, len);
}

static bool _add(struct sbatch_words *words, const char *word)
{
	char **list = realloc(words->list, (words->count + 2) * sizeof(*list));

	if (!list)
		return false;
	words->list = list;
	list[words->count] = strdup(word);
	if (!list[words->count])
		return false;
	list[++words->count] = NULL;
	return true;
}

/* Cut the next word off the line, without its quotes, as sbatch does: a
 * backslash takes the next character as it is, but a blank outside of quotes
 * ends the word all the same, and '#' the line. NULL: there is none. */
static char *_next_word(char **line)
{
	char *at = *line + strspn(*line, BLANKS);
	char *word = at, *to = at;
	char quote = '\0';

	if (!*at || *at == '#')
		return NULL;
	while (*at && (quote || !strchr(BLANKS, *at))) {
		if (*at == '\\') {
			at++;
			if (*at && (quote || !strchr(BLANKS, *at)))
				*to++ = *at++;
		} else if (quote ? *at == quote : *at == '\'' || *at == '"') {
			quote = quote ? '\0' : *at;
			at++;
		} else if (!quote && *at == '#') {
			at += strlen(at);
		} else {
			*to++ = *at++;
		}
	}
	*line = *at ? at + 1 : at;
	*to = '\0';
	return word;
}

static bool _add_line(struct sbatch_words *words, char *line)
{
	for (char *word = _next_word(&line); word; word = _next_word(&line)) {
		if (!_add(words, word))
			return false;
	}
	return true;
}

/* Its #SBATCH lines, up to its first command. */
static bool _add_script(struct sbatch_words *words, const char *path)
{
	static const char prefix[] = "#SBATCH";
	FILE *file = fopen(path, "re");
	char line[LINE_MAX_LEN];
	bool is_good = true;

	while (is_good && file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, prefix, sizeof(prefix) - 1))
			is_good = _add_line(words, line + sizeof(prefix) - 1);
		else if (line[0] != '#' && line[strspn(line, BLANKS)])
			break;
	}
	if (file)
		fclose(file);
	return is_good;
}

static bool _add_command(struct sbatch_words *words, const struct words *args)
{
	size_t end = optind > 0 ? (size_t) optind : args->count;
	bool is_good =
		end >= args->count || _add_script(words, args->list[end]);

	words->typed = words->count;
	for (size_t i = 1; is_good && i < args->count && i < end; i++)
		is_good = _add(words, args->list[i]);
	return is_good;
}

bool sbatch_words_read(struct sbatch_words *words)
{
	struct command command;
	bool is_good;

	*words = (struct sbatch_words){0};
	if (!command_read(&command))
		return false;
	is_good = _add_command(words, &command.args);
	command_free(&command);
	if (!is_good)
		sbatch_words_free(words);
	return is_good;
}

void sbatch_words_free(struct sbatch_words *words)
{
	for (size_t i = 0; i < words->count; i++)
		free(words->list[i]);
	free(words->list);
	*words = (struct sbatch_words){0};
}
