#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct resume_mode chosen;
static bool was_given;

bool resume_parse(const char *text, struct resume_mode *mode)
{
	unsigned long limit;
	char *end;

	if (!strcmp(text, "0") || !strcmp(text, "1")) {
		*mode = (struct resume_mode){
			.kind = text[0] == '1' ? RESUME_EVIDENCE : RESUME_OFF};
		return true;
	}
	if (strncmp(text, "any:", 4) || text[4] < '1' || text[4] > '9')
		return false;
	errno = 0;
	limit = strtoul(text + 4, &end, 10);
	if (errno || *end || limit > OPTIONS_LIMIT_MAX)
		return false;
	*mode = (struct resume_mode){.kind = RESUME_ANY,
				     .limit = (unsigned int) limit};
	return true;
}

void resume_format(const struct resume_mode *mode,
		   char text[static RESUME_TEXT_MAX])
{
	int len;

	if (mode->kind == RESUME_ANY)
		len = snprintf(text, RESUME_TEXT_MAX, "any:%u", mode->limit);
	else
		len = snprintf(text, RESUME_TEXT_MAX, "%d",
			       mode->kind == RESUME_EVIDENCE);
	if (len < 0 || len >= RESUME_TEXT_MAX)
		text[0] = '\0';
}

/* Slurm calls this for each place the option stands: the last one wins. A
 * value refused at submission cannot reach a node by the front door; one that
 * does is forged, and a node does not fail a job over it. */
static int _on_option(int val, const char *optarg, int remote)
{
	struct resume_mode mode;

	(void) val;
	if (!optarg || !resume_parse(optarg, &mode)) {
		slurm_error("steward: --auto-resume=%.64s: use 0 (off), 1 (on) "
			    "or any:N with N from 1 to %d",
			    optarg ? optarg : "", OPTIONS_LIMIT_MAX);
		return remote ? 0 : -1;
	}
	chosen = mode;
	was_given = true;
	return 0;
}

static struct spank_option auto_resume = {
	.name = "auto-resume",
	.arginfo = "0|1|any:N",
	.usage = "resume the job after a node fault: 0 never, 1 when a fault "
		 "is found, any:N up to N times after any failure",
	.has_arg = 1,
	.cb = _on_option,
};

int options_register(spank_t spank)
{
	spank_err_t rc = spank_option_register(spank, &auto_resume);

	if (rc != ESPANK_SUCCESS) {
		slurm_error("steward: --auto-resume is not to be had: %s",
			    spank_strerror(rc));
		return -1;
	}
	return 0;
}

bool options_given(struct resume_mode *mode)
{
	if (was_given)
		*mode = chosen;
	return was_given;
}
