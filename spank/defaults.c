#include "defaults.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME  "defaults"
#define LINE_ROOM  1024
#define LINES_MAX  64
#define VALUE_ROOM 256

/* Which variable of a script says what a key is about. */
static const struct {
	const char *key;
	const char *variable;
} conditions[] = {
	{"partition", "SLURM_JOB_PARTITION"},
	{"account", "SLURM_JOB_ACCOUNT"},
	{"qos", "SLURM_JOB_QOS"},
};

bool defaults_exist(const struct config *config)
{
	char path[CONFIG_PATH_ROOM];

	return config_beside(config, FILE_NAME, path) && !access(path, R_OK);
}

static bool _holds(spank_t spank, const char *key, const char *value)
{
	char text[VALUE_ROOM];

	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]);
	     i++) {
		if (strcmp(key, conditions[i].key))
			continue;
		return spank_getenv(spank, conditions[i].variable, text,
				    sizeof(text)) == ESPANK_SUCCESS &&
		       !strcmp(text, value);
	}
	return false;
}

/* Whether the line is for this job, and which mode it gives. */
static bool _fits(spank_t spank, char *line, struct resume_mode *mode)
{
	bool has_mode = false;
	char *rest;

	for (char *word = strtok_r(line, " \n", &rest); word;
	     word = strtok_r(NULL, " \n", &rest)) {
		char *value = strchr(word, '=');

		if (!value)
			return false;
		*value++ = '\0';
		if (!strcmp(word, "mode"))
			has_mode = resume_parse(value, mode, NULL);
		else if (!_holds(spank, word, value))
			return false;
	}
	return has_mode;
}

bool defaults_find(spank_t spank, const struct config *config,
		   struct resume_mode *mode)
{
	char path[CONFIG_PATH_ROOM];
	char line[LINE_ROOM];
	bool found = false;
	FILE *file;

	if (!config_beside(config, FILE_NAME, path))
		return false;
	file = fopen(path, "re");
	if (!file)
		return false;
	for (int i = 0; i < LINES_MAX && !found; i++) {
		if (!fgets(line, sizeof(line), file))
			break;
		found = _fits(spank, line, mode);
	}
	fclose(file);
	return found;
}
