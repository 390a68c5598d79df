#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <slurm/spank.h>

#define LINE_ROOM 1024
#define OPTION	  ",quiet="

static bool site_is_quiet;
static bool is_said, said; /* by the job */

void say_site(bool is_quiet)
{
	site_is_quiet = is_quiet;
}

void say_mode(const struct resume_mode *mode)
{
	const char *option = strstr(resume_text(mode), OPTION);

	is_said = option != NULL;
	said = option && option[strlen(OPTION)] == '1';
}

bool say_is_quiet(void)
{
	return is_said ? said : site_is_quiet;
}

static void say(void (*out)(const char *format, ...), const char *format,
		va_list values)
{
	char line[LINE_ROOM];

	(void) vsnprintf(line, sizeof(line), format, values);
	if (!say_is_quiet())
		out("steward: %s", line);
}

void say_info(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	say(slurm_info, format, values);
	va_end(values);
}

void say_error(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	say(slurm_error, format, values);
	va_end(values);
}
