#include "mode.h"

#include <string.h>

#define CODES_MAX    32
#define PATH_LEN_MAX 255

static bool _is(struct piece piece, const char *text)
{
	return piece.len == strlen(text) && !memcmp(piece.at, text, piece.len);
}

static bool _is_whole(struct piece value, long low, long high)
{
	long number = piece_whole(value);

	return number >= low && number <= high;
}

static bool _is_thousand(struct piece value)
{
	return _is_whole(value, 0, 1000);
}

static bool _is_some(struct piece value)
{
	return _is_whole(value, 1, 1000);
}

static bool _is_a_days_seconds(struct piece value)
{
	return _is_whole(value, 0, 86400);
}

static bool _is_switch(struct piece value)
{
	return _is_whole(value, 0, 1);
}

static bool _is_code_list(struct piece value)
{
	for (int count = 0; count < CODES_MAX; count++) {
		struct piece rest;
		struct piece code = piece_cut(value, ':', &rest);

		if (!_is_whole(code, 1, 255))
			return false;
		if (code.len == value.len)
			return true;
		value = rest;
	}
	return false;
}

static bool _is_hang(struct piece value)
{
	return _is(value, "0") || _is(value, "1") ||
	       _is_whole(value, 10, 86400);
}

static bool _is_signal(struct piece value)
{
	static const char *const names[] = {"USR1", "USR2", "HUP", "QUIT",
					    "URG"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (_is(value, names[i]))
			return true;
	}
	return false;
}

static bool _is_path(struct piece value)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._/+@%:=-";

	if (!value.len || value.at[0] != '/' || value.len > PATH_LEN_MAX)
		return false;
	for (size_t i = 0; i < value.len; i++) {
		if (!memchr(allowed, value.at[i], sizeof(allowed) - 1))
			return false;
	}
	return true;
}

static const struct {
	const char *name;
	bool (*is_good)(struct piece value);
	const char *takes; /* the complaint, with the range */
} options[] = {
	{"max", _is_thousand, "is not valid (0 to 1000)"},
	{"stalls", _is_some, "is not valid (1 to 1000)"},
	{"age", _is_a_days_seconds, "is not valid (seconds, 0 to 86400)"},
	{"backoff", _is_switch, "is not valid (0 or 1)"},
	{"codes", _is_code_list, "is not valid (exit codes, 1 to 255)"},
	{"timeout", _is_switch, "is not valid (0 or 1)"},
	{"requeue", _is_switch, "is not valid (0 or 1)"},
	{"hang", _is_hang, "is not valid (0, 1, or seconds, 10 to 86400)"},
	{"stacks", _is_signal, "is not valid (USR1, USR2, HUP, QUIT or URG)"},
	{"checkpoint", _is_path, "is not valid (an absolute path)"},
	{"quiet", _is_switch, "is not valid (0 or 1)"},
};

#define OPTION_COUNT (sizeof(options) / sizeof(options[0]))

static bool _read_kind(struct piece word, enum resume_kind *kind)
{
	if (_is(word, "0") || _is(word, "1")) {
		*kind = word.at[0] == '1' ? RESUME_EVIDENCE : RESUME_OFF;
		return true;
	}
	*kind = RESUME_ANY;
	return word.len > 4 && !memcmp(word.at, "any:", 4) &&
	       word.at[4] != '0' &&
	       _is_whole((struct piece){word.at + 4, word.len - 4}, 1,
			 RESUME_LIMIT_MAX);
}

/* NULL, or what is wrong with the word; *seen has a bit for each option. */
static const char *_read_option(struct piece word, unsigned int *seen)
{
	struct piece value;
	struct piece key = piece_cut(word, '=', &value);

	for (size_t i = 0; i < OPTION_COUNT; i++) {
		if (!_is(key, options[i].name))
			continue;
		if (*seen & 1U << i)
			return "is given twice";
		if (!options[i].is_good(value))
			return options[i].takes;
		*seen |= 1U << i;
		return NULL;
	}
	return "is not known";
}

bool resume_parse(const char *text, struct resume_mode *mode,
		  struct word_fault *fault)
{
	struct piece all = {text, strnlen(text, RESUME_TEXT_MAX)};
	struct piece rest = all;
	struct piece word = piece_cut(rest, ',', &rest);
	enum resume_kind kind;
	unsigned int seen = 0;

	if (all.len == RESUME_TEXT_MAX)
		return word_refuse(fault, all, "is longer than 400 characters");
	if (!_read_kind(word, &kind))
		return word_refuse(fault, word, "is not known");
	while (word.at + word.len < text + all.len) {
		const char *why;

		word = piece_cut(rest, ',', &rest);
		why = _read_option(word, &seen);
		if (why)
			return word_refuse(fault, word, why);
	}
	mode->kind = kind;
	memcpy(mode->text, text, all.len + 1);
	return true;
}

const char *resume_text(const struct resume_mode *mode)
{
	return mode->text[0] ? mode->text : "0";
}
