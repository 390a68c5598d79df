// A process that is linked with Slurm's own library and reads slurmctld for
// Steward's head: a line in, an answer out (README.md).
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slurm/slurm.h>

#include "reader.h"

enum { MOST_WORDS = 4096 };

struct kind {
	const char *word;
	bool (*answer)(FILE *out, char *words[], size_t count);
};

static const struct kind kinds[] = {
	{"fits", answer_fits},
	{"nodes", answer_nodes},
	{"node", answer_nodes},
	{"gres", answer_nodes},
	{"jobs", answer_jobs},
	{"job", answer_jobs},
	{"parts", answer_jobs},
	{"on", answer_jobs},
	{"partitions", answer_partitions},
};

bool is_number(const char *word, uint32_t *value)
{
	char *end = NULL;

	if (*word < '0' || *word > '9')
		return false;
	errno = 0;
	unsigned long found = strtoul(word, &end, 10);
	*value = (uint32_t) found;
	return !errno && !*end && found < NO_VAL;
}

static void answer(FILE *out, char *line)
{
	static char *words[MOST_WORDS];
	char *rest = NULL;
	size_t count = 0;

	for (char *word = strtok_r(line, " \n", &rest); word;
	     word = strtok_r(NULL, " \n", &rest)) {
		if (count == MOST_WORDS) {
			count = 0;
			break;
		}
		words[count++] = word;
	}
	bool is_told = false;
	for (size_t i = 0; count && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(words[0], kinds[i].word))
			is_told = kinds[i].answer(out, words, count);
	if (!is_told)
		fputs("no\n", out);
	fflush(out);
}

int main(void)
{
	static char line[LONGEST_LINE];
	// What the library writes by itself is dropped.
	FILE *out = fdopen(dup(STDOUT_FILENO), "w");

	if (!out || !freopen("/dev/null", "w", stdout) ||
	    !freopen("/dev/null", "w", stderr))
		return 1;
	slurm_init(NULL);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strchr(line, '\n'))
			return 1;
		answer(out, line);
	}
	return 0;
}
