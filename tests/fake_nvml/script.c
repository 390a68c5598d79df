#include "script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 256, WORD = 64 };

static FILE *open_script(const char *variable)
{
	const char *path = getenv(variable);

	return path ? fopen(path, "r") : NULL;
}

/* Whether a line's first word means this GPU. */
static bool is_about(const char *word, int gpu)
{
	char *end;

	return !strcmp(word, "*") ||
	       (strtol(word, &end, 10) == gpu && *end == '\0');
}

long long script_value(int gpu, const char *name, long long otherwise)
{
	FILE *script = open_script("FAKE_NVML");
	char line[LINE], first[WORD], second[WORD];
	long long value, found = otherwise;

	if (!script)
		return otherwise;
	while (fgets(line, sizeof(line), script)) {
		if (gpu < 0) {
			if (sscanf(line, "%63s %lld", first, &value) == 2 &&
			    !strcmp(first, name))
				found = value;
		} else if (sscanf(line, "%63s %63s %lld", first, second,
				  &value) == 3 &&
			   is_about(first, gpu) && !strcmp(second, name)) {
			found = value;
		}
	}
	fclose(script);
	return found;
}

bool script_has(const char *word)
{
	FILE *script = open_script("FAKE_NVML");
	char line[LINE];
	bool found = false;

	if (!script)
		return false;
	while (!found && fgets(line, sizeof(line), script)) {
		line[strcspn(line, "\n")] = '\0';
		found = !strcmp(line, word);
	}
	fclose(script);
	return found;
}

bool script_process(int gpu, int number, unsigned int *pid,
		    unsigned long long *mib)
{
	FILE *script = open_script("FAKE_NVML");
	char line[LINE], first[WORD];
	bool found = false;

	if (!script)
		return false;
	while (!found && fgets(line, sizeof(line), script)) {
		if (sscanf(line, "%63s process %u %llu", first, pid, mib) ==
			    3 &&
		    is_about(first, gpu))
			found = number-- == 0;
	}
	fclose(script);
	return found;
}

unsigned long long script_seed(void)
{
	FILE *file = open_script("FAKE_NVML_SEED");
	unsigned long long seed = 14695981039346656037ULL;
	int byte;

	if (!file)
		return seed;
	while ((byte = fgetc(file)) != EOF)
		seed = (seed ^ (unsigned long long) byte) * 1099511628211ULL;
	fclose(file);
	return seed;
}
