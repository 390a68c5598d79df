/*
 * Reads values of --auto-resume=, one a line, and says of each what the shim
 * makes of it: "0", "1" or "any", or "bad" and the word that is wrong. For the
 * comparison with Python's reader.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mode.h"

static const char *const kinds[] = {
	[RESUME_OFF] = "0", [RESUME_EVIDENCE] = "1", [RESUME_ANY] = "any"};

int main(void)
{
	struct word_fault fault;
	struct resume_mode mode;
	char *line = NULL;
	size_t room = 0;
	ssize_t len;

	while ((len = getline(&line, &room, stdin)) > 0) {
		line[len - 1] = '\0';
		if (resume_parse(line, &mode, &fault))
			printf("%s %s\n", kinds[mode.kind], resume_text(&mode));
		else
			printf("bad %.*s\n", fault.len, fault.word);
	}
	free(line);
	return EXIT_SUCCESS;
}
