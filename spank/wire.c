#include "wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define VERSION "steward/1"

struct word {
	const char *text;
	size_t len;
};

static const struct {
	const char *name;
	enum wire_verb verb;
} verbs[] = {
	{"wait", WIRE_WAIT},	   {"ok", WIRE_OK},	{"retry", WIRE_RETRY},
	{"requeue", WIRE_REQUEUE}, {"stop", WIRE_STOP},
};

static bool _is(const struct word *word, const char *text)
{
	return word->len == strlen(text) &&
	       !memcmp(word->text, text, word->len);
}

static bool _is_printable(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (line[i] < 0x20 || line[i] > 0x7e)
			return false;
	}
	return true;
}

/* Take the next word off the front; false at the end or at an empty word. */
static bool _next_word(const char **rest, const char *end, struct word *word)
{
	const char *space;

	if (*rest >= end)
		return false;
	space = memchr(*rest, ' ', (size_t) (end - *rest));
	word->text = *rest;
	word->len = (size_t) ((space ? space : end) - *rest);
	*rest = space ? space + 1 : end;
	return word->len > 0;
}

static bool _is_host_list(const char *text, size_t len)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._,-[]";

	/* A leading dash would be read as an option, a slash as a file. */
	if (!len || text[0] == '-')
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!memchr(allowed, text[i], sizeof(allowed) - 1))
			return false;
	}
	return true;
}

/* Split "key=value" at its first "="; false unless the key is well formed. */
static bool _split(const struct word *word, struct word *key,
		   struct word *value)
{
	const char *equals = memchr(word->text, '=', word->len);

	if (!equals || equals == word->text)
		return false;
	*key = (struct word){word->text, (size_t) (equals - word->text)};
	*value = (struct word){equals + 1, word->len - key->len - 1};
	for (size_t i = 0; i < key->len; i++) {
		if (key->text[i] != '_' &&
		    (key->text[i] < 'a' || key->text[i] > 'z'))
			return false;
	}
	return true;
}

static bool _read_field(const struct word *word, struct wire_answer *answer)
{
	struct word key, value;

	if (!_split(word, &key, &value))
		return false;
	if (answer->verb != WIRE_RETRY || !_is(&key, "exclude"))
		return true;
	if (answer->exclude[0] || !_is_host_list(value.text, value.len))
		return false;
	memcpy(answer->exclude, value.text, value.len);
	answer->exclude[value.len] = '\0';
	return true;
}

static enum wire_verb _read_verb(const struct word *word)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (_is(word, verbs[i].name))
			return verbs[i].verb;
	}
	return WIRE_MALFORMED;
}

static bool _read_line(const char *line, size_t len, struct wire_answer *answer)
{
	const char *end = line + len;
	const char *rest = line;
	struct word word;

	if (!len || len >= WIRE_LINE_MAX || !_is_printable(line, len) ||
	    line[len - 1] == ' ')
		return false;
	if (!_next_word(&rest, end, &word) || !_is(&word, VERSION))
		return false;
	if (!_next_word(&rest, end, &word))
		return false;
	answer->verb = _read_verb(&word);
	while (rest < end) {
		if (!_next_word(&rest, end, &word) ||
		    !_read_field(&word, answer))
			return false;
	}
	return true;
}

void wire_parse(const char *line, size_t len, struct wire_answer *answer)
{
	answer->verb = WIRE_MALFORMED;
	answer->exclude[0] = '\0';
	if (_read_line(line, len, answer))
		return;
	answer->verb = WIRE_MALFORMED;
	answer->exclude[0] = '\0';
}

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
