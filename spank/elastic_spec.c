#include "elastic_spec.h"

#include <stdlib.h>
#include <string.h>

#define SIZES_MAX 32
#define NODES_MAX 4096
#define DAY_S	  86400

/* What is read so far. A value that was not given is -1. */
struct reading {
	long sizes[SIZES_MAX];
	int count;
	long step;
	long values[7];
};

enum { GRACE, SETTLE, FAULTY, SNOOZE, BACKOFF, BATCH, UNEVEN, OPTIONS };

static const struct {
	const char *name;
	long low, high;
} options[OPTIONS] = {
	[GRACE] = {"grace", 1, DAY_S},	   [SETTLE] = {"settle", 0, DAY_S},
	[FAULTY] = {"faulty", 0, DAY_S},   [SNOOZE] = {"snooze", 0, DAY_S},
	[BACKOFF] = {"backoff", 0, DAY_S}, [BATCH] = {"batch", 1, 999999},
	[UNEVEN] = {"uneven", 0, 1},
};

static const char not_known[] = "is not known";
static const char twice[] = "is given twice";
static const char out_of_range[] = "is out of range";

static const char *_read_option(struct piece word, struct reading *reading)
{
	struct piece value;
	struct piece key = piece_cut(word, '=', &value);

	for (int i = 0; i < OPTIONS; i++) {
		long number;

		if (key.len != strlen(options[i].name) ||
		    memcmp(key.at, options[i].name, key.len))
			continue;
		if (reading->values[i] >= 0)
			return twice;
		number = piece_whole(value);
		if (number < options[i].low || number > options[i].high)
			return out_of_range;
		reading->values[i] = number;
		return NULL;
	}
	return not_known;
}

static const char *_read_size(struct piece word, struct reading *reading)
{
	struct piece step;
	struct piece size = piece_cut(word, ':', &step);
	long nodes = piece_whole(size);

	if (nodes < 0)
		return not_known;
	if (nodes < 1 || nodes > NODES_MAX || reading->count == SIZES_MAX)
		return out_of_range;
	if (reading->count && nodes <= reading->sizes[reading->count - 1])
		return "is not more than the size before it";
	reading->sizes[reading->count++] = nodes;
	if (size.len == word.len)
		return NULL;
	reading->step = piece_whole(step);
	if (reading->count > 1 || reading->step < 1 || reading->step >= nodes)
		return "is no MAX:STEP with a step of 1 to MAX - 1";
	return NULL;
}

static bool _is_option(struct piece word)
{
	return memchr(word.at, '=', word.len) != NULL;
}

static const char *_read_word(struct piece word, struct reading *reading,
			      bool *after_sizes)
{
	if (_is_option(word)) {
		*after_sizes = true;
		return reading->count ? _read_option(word, reading)
				      : "stands before the sizes";
	}
	if (*after_sizes || reading->step)
		return not_known;
	return _read_size(word, reading);
}

/* A batch that cannot be shared out: of a list every size counts, else the
 * largest one; the sizes between are passed over. */
static const char *_check_batch(const struct reading *reading)
{
	long batch = reading->values[BATCH];

	if (reading->values[UNEVEN] == 0 && batch < 0)
		return "needs batch=N";
	for (int i = 0; batch >= 0 && i < reading->count; i++) {
		if (batch < reading->sizes[i])
			return "has fewer samples in a batch than nodes";
		if (reading->values[UNEVEN] == 0 && batch % reading->sizes[i])
			return "does not share its batch out evenly over each "
			       "size (uneven=1 lets it)";
	}
	return NULL;
}

static const char *_check(const struct reading *reading)
{
	if (reading->count == 1 && reading->sizes[0] < 2)
		return "leaves nothing to grow to";
	return _check_batch(reading);
}

bool elastic_parse(const char *text, struct elastic_spec *spec,
		   struct word_fault *fault)
{
	struct piece all = {text, strnlen(text, ELASTIC_TEXT_MAX)};
	struct piece rest = all;
	struct piece word;
	struct reading reading = {.values = {-1, -1, -1, -1, -1, -1, -1}};
	bool after_sizes = false;
	const char *why;

	if (all.len == ELASTIC_TEXT_MAX)
		return word_refuse(fault, all, "is longer than 200 characters");
	do {
		word = piece_cut(rest, ',', &rest);
		why = _read_word(word, &reading, &after_sizes);
		if (why)
			return word_refuse(fault, word, why);
	} while (word.at + word.len < text + all.len);
	why = _check(&reading);
	if (why)
		return word_refuse(fault, all, why);
	spec->least = reading.sizes[0];
	spec->max = reading.sizes[reading.count - 1];
	spec->step = reading.count > 1 ? 0 : reading.step ? reading.step : 1;
	memcpy(spec->text, text, all.len + 1);
	return true;
}

const char *elastic_begins_with(const struct elastic_spec *spec, long nodes)
{
	if (!spec->step && nodes > spec->least)
		return "has a size that is less than the job's own nodes";
	if (nodes >= spec->max || spec->max - nodes < spec->step)
		return "does not let the job grow beyond its own nodes";
	if (spec->step && (spec->max - nodes) / spec->step >= ELASTIC_SIZES_MAX)
		return "has more than 64 sizes: name a step, as in 512:8";
	return NULL;
}
