#include "exclude.h"

#include <stdbool.h>
#include <string.h>

/* The length of the first name: a comma in brackets is its own. */
static size_t _first(const char *names)
{
	size_t len = 0;
	int depth = 0;

	for (; names[len] && (names[len] != ',' || depth > 0); len++)
		depth += (names[len] == '[') - (names[len] == ']');
	return len;
}

/* What follows the first name. */
static const char *_rest(const char *names)
{
	size_t len = _first(names);

	return names + len + (names[len] == ',');
}

static bool _has(const char *list, const char *name, size_t len)
{
	for (; list[0]; list = _rest(list)) {
		if (_first(list) == len && !memcmp(list, name, len))
			return true;
	}
	return false;
}

static void _append(char *list, const char *name, size_t len)
{
	size_t used = strlen(list);

	if (used + 1 + len >= WIRE_LINE_MAX)
		return;
	if (used)
		list[used++] = ',';
	memcpy(list + used, name, len);
	list[used + len] = '\0';
}

static void _append_all(char *list, const char *names)
{
	for (; names[0]; names = _rest(names)) {
		size_t len = _first(names);

		if (len && !_has(list, names, len))
			_append(list, names, len);
	}
}

void exclude_add(char list[static WIRE_LINE_MAX], const char *newest)
{
	char before[WIRE_LINE_MAX];

	memcpy(before, list, strlen(list) + 1);
	list[0] = '\0';
	_append_all(list, newest);
	_append_all(list, before);
}
