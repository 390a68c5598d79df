#include "wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <string.h>

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

/* Write what is not printable, a space or a percent sign as "%XX"; false when
 * it does not fit. */
static bool _escape(const char *plain, char *text, size_t size)
{
	size_t used = 0;

	for (const char *c = plain; *c; c++) {
		bool as_is = *c > 0x20 && *c < 0x7f && *c != '%';

		if (used + (as_is ? 1 : 3) >= size)
			return false;
		if (as_is)
			text[used++] = *c;
		else
			used += (size_t) snprintf(text + used, size - used,
						  "%%%02X", (unsigned char) *c);
	}
	text[used] = '\0';
	return true;
}

/* Add words to a line, before its LF; where there is no room it stays as it is.
 */
static size_t _add(char line[WIRE_LINE_MAX], size_t len, const char *words)
{
	size_t more = strlen(words);

	if (!len || len + more >= WIRE_LINE_MAX)
		return len;
	memcpy(line + len - 1, words, more);
	memcpy(line + len - 1 + more, "\n", 2);
	return len + more;
}

/* " log=INODE:BEGIN:END,...", or nothing. */
static const char *_format_logs(const struct wire_ask *ask,
				char words[WIRE_LINE_MAX])
{
	const struct wire_log *logs = ask->logs;
	size_t used = 0;

	words[0] = '\0';
	for (int i = 0; i < WIRE_LOGS; i++) {
		if (!logs[i].inode || (i && logs[i].inode == logs[0].inode))
			continue;
		used += (size_t) snprintf(words + used, WIRE_LINE_MAX - used,
					  "%s%" PRIu64 ":%" PRIu64 ":%" PRIu64,
					  used ? "," : " log=", logs[i].inode,
					  logs[i].begin, logs[i].end);
	}
	return words;
}

size_t wire_format_ask(const struct wire_ask *ask, char line[WIRE_LINE_MAX])
{
	char step[16];

	_format_step(ask, step);
	return _fitting(snprintf(
		line, WIRE_LINE_MAX,
		VERSION " ask kind=%s job=%" PRIu32 " step=%s uid=%u mode=%s "
			"attempt=%u restart=%" PRIu32 " status=%d%s%s%s\n",
		ask->kind == WIRE_KIND_BATCH ? "batch" : "step", ask->job, step,
		(unsigned int) ask->uid, resume_text(&ask->mode), ask->attempt,
		ask->restart, ask->status, ask->replay ? "" : " replay=no",
		ask->own ? " own=yes" : "",
		ask->script_gone      ? " script=gone"
		: ask->script_unbegun ? " script=unbegun"
				      : ""));
}

size_t wire_format_ask_of(const struct wire_ask *ask, char line[WIRE_LINE_MAX])
{
	size_t len = wire_format_ask(ask, line);
	char words[WIRE_LINE_MAX];

	if (ask->nodes && ask->nodes[0] &&
	    _fitting(snprintf(
		    words, sizeof(words), " nodes=%s age=%u", ask->nodes,
		    ask->age < WIRE_AGE_MAX ? ask->age : WIRE_AGE_MAX)))
		len = _add(line, len, words);
	return _add(line, len, _format_logs(ask, words));
}

size_t wire_format_ended(const struct wire_ask *ask, char line[WIRE_LINE_MAX])
{
	char step[16], logs[WIRE_LINE_MAX];

	_format_step(ask, step);
	return _format_logs(ask, logs)[0]
		       ? _fitting(snprintf(line, WIRE_LINE_MAX,
					   VERSION " ended job=%" PRIu32
						   " step=%s restart=%" PRIu32
						   "%s\n",
					   ask->job, step, ask->restart, logs))
		       : 0;
}

size_t wire_format_opted(const struct wire_ask *ask, char line[WIRE_LINE_MAX])
{
	char number[24] = "", again[24] = "";

	if (ask->kind == WIRE_KIND_STEP && ask->step != WIRE_STEP_UNKNOWN)
		(void) snprintf(number, sizeof(number), " step=%" PRIu32,
				ask->step);
	if (ask->attempt > 1)
		(void) snprintf(again, sizeof(again), " attempt=%u",
				ask->attempt);
	return _fitting(snprintf(
		line, WIRE_LINE_MAX,
		VERSION " opted job=%" PRIu32 " uid=%u mode=%s restart=%" PRIu32
			" batch=%d%s%s%s%s%s\n",
		ask->job, (unsigned int) ask->uid, resume_text(&ask->mode),
		ask->restart, ask->kind == WIRE_KIND_BATCH, number, again,
		ask->elastic ? " elastic=" : "",
		ask->elastic ? ask->elastic : "",
		ask->detached ? " detached=yes" : ""));
}

size_t wire_format_exit(const struct wire_ask *ask, uint32_t task,
			char line[WIRE_LINE_MAX])
{
	char step[16];

	_format_step(ask, step);
	return _fitting(snprintf(
		line, WIRE_LINE_MAX,
		VERSION " exit job=%" PRIu32 " step=%s restart=%" PRIu32
			" task=%" PRIu32 " status=%d\n",
		ask->job, step, ask->restart, task, ask->status));
}

size_t wire_format_log(const struct wire_ask *ask, const char *path,
		       uint64_t length, char line[WIRE_LINE_MAX])
{
	char out[WIRE_LINE_MAX];

	if (!_escape(path, out, sizeof(out)))
		return 0;
	return _fitting(snprintf(line, WIRE_LINE_MAX,
				 VERSION " log job=%" PRIu32 " restart=%" PRIu32
					 " size=%" PRIu64 " out=%s\n",
				 ask->job, ask->restart, length, out));
}
