/*
 * Reads values of --elastic=, one a line, and says of each what the shim makes
 * of it: "good MAX STEP", or "bad" and the word that is wrong and why. For the
 * comparison with Python's reader.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../elastic_spec.h"

int main(void)
{
	struct word_fault fault;
	struct elastic_spec spec;
	char *line = NULL;
	size_t room = 0;
	ssize_t len;

	while ((len = getline(&line, &room, stdin)) > 0) {
		line[len - 1] = '\0';
		if (elastic_parse(line, &spec, &fault))
			printf("good %ld %ld\n", spec.max, spec.step);
		else
			printf("bad %s\n", fault.why);
	}
	free(line);
	return EXIT_SUCCESS;
}
