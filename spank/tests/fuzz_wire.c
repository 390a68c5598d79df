/*
 * Whatever bytes come, wire_parse() stays inside its memory, is sure of its
 * answer, and lets through no node list that srun could take for anything else.
 * With libFuzzer as it is; with WITH_MAIN it replays the files it is given.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The same bytes as a value of --auto-resume=. */
static void _read_mode(const uint8_t *data, size_t size)
{
	char text[RESUME_TEXT_MAX + 8];
	struct word_fault fault;
	struct resume_mode mode;
	size_t len = size < sizeof(text) - 1 ? size : sizeof(text) - 1;

	memcpy(text, data, len);
	text[len] = '\0';
	if (resume_parse(text, &mode, &fault)) {
		if (strcmp(resume_text(&mode), text))
			abort();
	} else if (fault.word < text || fault.len < 0 ||
		   fault.word + fault.len > text + len) {
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_answer answer;
	struct wire_answer again;

	memset(&answer, 0xa5, sizeof(answer));
	memset(&again, 0x5a, sizeof(again));
	wire_parse((const char *) data, size, &answer);
	wire_parse((const char *) data, size, &again);
	if (answer.verb != again.verb || strcmp(answer.exclude, again.exclude))
		abort();
	if (answer.verb != WIRE_RETRY && answer.exclude[0])
		abort();
	if (answer.exclude[0] == '-' || strpbrk(answer.exclude, "/ =;$`'\"\\"))
		abort();
	if (answer.severity != again.severity ||
	    strcmp(answer.check, again.check) ||
	    strcmp(answer.text, again.text))
		abort();
	if ((answer.verb == WIRE_BAD) !=
	    (answer.severity != WIRE_NO_SEVERITY && answer.check[0]))
		abort();
	for (const char *c = answer.text; *c; c++) {
		if (*c < 0x20 || *c > 0x7e)
			abort();
	}
	for (int i = 0; i < WIRE_FACTS; i++) {
		const char *fact = wire_fact(&answer, (enum wire_fact) i);
		const char *same = wire_fact(&again, (enum wire_fact) i);

		if (!fact != !same || (fact && strcmp(fact, same)) ||
		    (fact && answer.verb != WIRE_OK))
			abort();
		for (const char *c = fact ? fact : ""; *c; c++) {
			if (*c < 0x20 || *c > 0x7e)
				abort();
		}
	}
	_read_mode(data, size);
	if (answer.verb != WIRE_MALFORMED &&
	    (size >= WIRE_LINE_MAX || size < 12 ||
	     memcmp(data, "steward/1 ", 10)))
		abort();
	return 0;
}

#ifdef WITH_MAIN
int main(int ac, char **av)
{
	static uint8_t data[65536];

	for (int i = 1; i < ac; i++) {
		FILE *file = fopen(av[i], "rb");
		size_t size;

		if (!file) {
			perror(av[i]);
			return EXIT_FAILURE;
		}
		size = fread(data, 1, sizeof(data), file);
		fclose(file);
		LLVMFuzzerTestOneInput(data, size);
	}
	printf("replayed %d inputs\n", ac - 1);
	return EXIT_SUCCESS;
}
#endif
