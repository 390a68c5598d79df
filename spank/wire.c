#include "wire.h"

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
	{"requeue", WIRE_REQUEUE}, {"stop", WIRE_STOP}, {"fine", WIRE_FINE},
	{"unknown", WIRE_UNKNOWN}, {"bad", WIRE_BAD},
};

static const struct {
	const char *name;
	enum wire_severity severity;
} severities[] = {
	{"info", WIRE_INFO},
	{"suspect", WIRE_SUSPECT},
	{"degraded", WIRE_DEGRADED},
	{"fatal", WIRE_FATAL},
};

static const char *const facts[WIRE_FACTS] = {
	[WIRE_PROGRESS_FILE] = "progress_file",
	[WIRE_STACKS_FILE] = "stacks_file",
	[WIRE_RESUME_COUNT] = "resume_count",
	[WIRE_LAST_CHECKPOINT] = "last_checkpoint",
	[WIRE_LAST_STEP] = "last_step",
	[WIRE_EXCLUDED_NODES] = "excluded_nodes",
	[WIRE_CULPRITS] = "culprits",
	[WIRE_RESUME_REASON] = "resume_reason",
	[WIRE_ELASTIC_ADDRESS] = "elastic_address",
	[WIRE_ELASTIC_TOKEN] = "elastic_token",
	[WIRE_RESUMED] = "resumed",
	[WIRE_WARNING] = "warning",
	[WIRE_LEFT_BEHIND] = "left_behind",
	[WIRE_PYTHON] = "python",
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

static int _hex(char digit)
{
	static const char digits[] = "0123456789ABCDEF";
	const char *at = digit ? strchr(digits, digit) : NULL;

	return at ? (int) (at - digits) : -1;
}

/* Undo "%XX"; false when it is not well formed, or hides what is not printable
 * or does not fit. */
static bool _read_text(const struct word *value, char *text, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < value->len; i++) {
		char c = value->text[i];

		if (c == '%') {
			int high = i + 1 < value->len ? _hex(value->text[i + 1])
						      : -1;
			int low = i + 2 < value->len ? _hex(value->text[i + 2])
						     : -1;

			if (high < 0 || low < 0)
				return false;
			c = (char) (high * 16 + low);
			i += 2;
		}
		if (c < 0x20 || c > 0x7e || used + 1 >= size)
			return false;
		text[used++] = c;
	}
	text[used] = '\0';
	return true;
}

static bool _read_severity(const struct word *value, enum wire_severity *told)
{
	for (size_t i = 0; i < sizeof(severities) / sizeof(severities[0]);
	     i++) {
		if (_is(value, severities[i].name)) {
			*told = severities[i].severity;
			return true;
		}
	}
	return false;
}

static bool _read_verdict(const struct word *key, const struct word *value,
			  struct wire_answer *answer)
{
	if (_is(key, "severity"))
		return _read_severity(value, &answer->severity);
	if (_is(key, "check"))
		return _read_text(value, answer->check, sizeof(answer->check));
	if (_is(key, "text"))
		return _read_text(value, answer->text, sizeof(answer->text));
	return true;
}

/* What is not known here is passed over; what is told twice is malformed. The
 * texts come one after the other, the first at 1. */
static bool _read_fact(const struct word *key, const struct word *value,
		       struct wire_answer *answer)
{
	for (size_t i = 0; i < WIRE_FACTS; i++) {
		size_t at = answer->fact_used;

		if (!_is(key, facts[i]))
			continue;
		if (answer->fact_at[i] ||
		    !_read_text(value, answer->fact_text + at,
				sizeof(answer->fact_text) - at))
			return false;
		answer->fact_at[i] = at;
		answer->fact_used += strlen(answer->fact_text + at) + 1;
		return true;
	}
	return true;
}

static bool _read_exclude(const struct word *value, struct wire_answer *answer)
{
	if (answer->exclude[0] || !_is_host_list(value->text, value->len))
		return false;
	memcpy(answer->exclude, value->text, value->len);
	answer->exclude[value->len] = '\0';
	return true;
}

static bool _read_field(const struct word *word, struct wire_answer *answer)
{
	struct word key, value;

	if (!_split(word, &key, &value))
		return false;
	if (answer->verb == WIRE_BAD)
		return _read_verdict(&key, &value, answer);
	if (answer->verb == WIRE_OK)
		return _read_fact(&key, &value, answer);
	if (answer->verb == WIRE_RETRY && _is(&key, "exclude"))
		return _read_exclude(&value, answer);
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

static void _clear(struct wire_answer *answer)
{
	answer->verb = WIRE_MALFORMED;
	answer->severity = WIRE_NO_SEVERITY;
	answer->exclude[0] = '\0';
	answer->check[0] = '\0';
	answer->text[0] = '\0';
	memset(answer->fact_at, 0, sizeof(answer->fact_at));
	answer->fact_used = 1;
	answer->fact_text[0] = '\0';
}

const char *wire_fact(const struct wire_answer *answer, enum wire_fact fact)
{
	size_t at = answer->fact_at[fact];

	return at ? answer->fact_text + at : NULL;
}

void wire_parse(const char *line, size_t len, struct wire_answer *answer)
{
	_clear(answer);
	if (!_read_line(line, len, answer) ||
	    (answer->verb == WIRE_BAD &&
	     (answer->severity == WIRE_NO_SEVERITY || !answer->check[0])))
		_clear(answer);
}

bool wire_take_line(char *buffer, size_t *used, struct wire_answer *answer)
{
	char *lf = memchr(buffer, '\n', *used);

	if (!lf)
		return false;
	wire_parse(buffer, (size_t) (lf - buffer), answer);
	*used -= (size_t) (lf + 1 - buffer);
	memmove(buffer, lf + 1, *used);
	return true;
}
