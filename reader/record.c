#include "record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <slurm/slurm.h>

// What is longer is cut: a job's user writes some of it.
enum { LONGEST_TEXT = 1 << 18 };

bool begin_records(struct records *made)
{
	*made = (struct records){.is_first = true};
	made->text = open_memstream(&made->bytes, &made->size);
	return made->text != NULL;
}

static void begin_field(struct records *to)
{
	if (!to->is_first)
		putc_unlocked('\t', to->text);
	to->is_first = false;
}

static void put_escaped(struct records *to, const char *text)
{
	static const char digits[] = "0123456789abcdef";
	size_t length = text ? strnlen(text, LONGEST_TEXT) : 0;

	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char) text[i];
		if (byte >= ' ' && byte <= '~' && byte != '\\') {
			putc_unlocked(byte, to->text);
		} else {
			putc_unlocked('\\', to->text);
			putc_unlocked(digits[byte >> 4], to->text);
			putc_unlocked(digits[byte & 15], to->text);
		}
	}
}

void put_text(struct records *to, const char *text)
{
	begin_field(to);
	put_escaped(to, text);
}

void put_number(struct records *to, int64_t number)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRId64, number);
	put_text(to, digits);
}

void put_number32(struct records *to, uint32_t number)
{
	if (number == NO_VAL || number == INFINITE)
		put_text(to, NULL);
	else
		put_number(to, number);
}

void put_number16(struct records *to, uint16_t number)
{
	if (number == NO_VAL16 || number == INFINITE16)
		put_text(to, NULL);
	else
		put_number(to, number);
}

void put_time(struct records *to, time_t at)
{
	if (at > 0 && at < (time_t) NO_VAL)
		put_number(to, at);
	else
		put_text(to, NULL);
}

void put_state(struct records *to, const char *base, uint64_t flags,
	       const struct flag *known, size_t count)
{
	put_text(to, base);
	for (size_t i = 0; i < count; i++) {
		if (!(flags & known[i].bit))
			continue;
		putc_unlocked('+', to->text);
		put_escaped(to, known[i].name);
		flags &= ~known[i].bit;
	}
	for (unsigned bit = 0; flags; bit++, flags >>= 1)
		if (flags & 1)
			fprintf(to->text, "+BIT_%u", bit);
}

void end_record(struct records *to)
{
	putc_unlocked('\n', to->text);
	to->is_first = true;
	to->count++;
}

time_t since_of(long stamp)
{
	return stamp > time(NULL) ? 0 : stamp;
}

void tell_records(FILE *out, struct records *made, const char *kind,
		  const char *stamp, const char *fields)
{
	if (fclose(made->text)) {
		free(made->bytes);
		fputs("no\n", out);
		return;
	}
	fprintf(out, "%s %s %zu %zu %s\n", kind, stamp, made->count, made->size,
		fields);
	fwrite(made->bytes, 1, made->size, out);
	free(made->bytes);
}

void tell_same(FILE *out, const char *kind, const char *stamp)
{
	fprintf(out, "%s %s same\n", kind, stamp);
}

void tell_failure(FILE *out, int error)
{
	fprintf(out, "no %d\n", error);
}
