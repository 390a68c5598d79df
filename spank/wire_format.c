#include "wire.h"

#include <inttypes.h>
#include <stdio.h>

#define VERSION "steward/1"

static void _format_step(const struct wire_ask *ask, char text[static 16])
{
	int len;

	if (ask->kind == WIRE_KIND_BATCH)
		len = snprintf(text, 16, "batch");
	else if (ask->step == WIRE_STEP_UNKNOWN)
		len = snprintf(text, 16, "unknown");
	else
		len = snprintf(text, 16, "%" PRIu32, ask->step);
	if (len < 0 || len >= 16)
		text[0] = '\0';
}

static size_t _fitting(int len)
{
	return len > 0 && len < WIRE_LINE_MAX ? (size_t) len : 0;
}

size_t wire_format_ask(const struct wire_ask *ask, char line[WIRE_LINE_MAX])
{
	char mode[RESUME_TEXT_MAX];
	char step[16];

	resume_format(&ask->mode, mode);
	_format_step(ask, step);
	return _fitting(snprintf(
		line, WIRE_LINE_MAX,
		VERSION " ask kind=%s job=%" PRIu32 " step=%s uid=%u mode=%s "
			"attempt=%u restart=%" PRIu32 " status=%d%s\n",
		ask->kind == WIRE_KIND_BATCH ? "batch" : "step", ask->job, step,
		(unsigned int) ask->uid, mode, ask->attempt, ask->restart,
		ask->status, ask->replay ? "" : " replay=no"));
}

size_t wire_format_opted(const struct wire_ask *ask, char line[WIRE_LINE_MAX])
{
	char mode[RESUME_TEXT_MAX];

	resume_format(&ask->mode, mode);
	return _fitting(snprintf(line, WIRE_LINE_MAX,
				 VERSION " opted job=%" PRIu32
					 " uid=%u mode=%s restart=%" PRIu32
					 " batch=%d\n",
				 ask->job, (unsigned int) ask->uid, mode,
				 ask->restart, ask->kind == WIRE_KIND_BATCH));
}
