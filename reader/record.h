// Records as text: a line each, fields with a tab between them.
//
// Everything but printable ASCII, and the backslash, is `\` and two hexadecimal
// digits. So no text, whoever wrote it, can end a field or a record.
#ifndef STEWARD_RECORD_H
#define STEWARD_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

// Records while they are gathered.
struct records {
	FILE *text;
	char *bytes; // valid after tell_records
	size_t size, count;
	bool is_first; // no field of the record was written yet
};

// How a record of one kind is written: FIELD(name, how, value) for each field.
bool begin_records(struct records *made);
void put_text(struct records *to, const char *text);
void put_number(struct records *to, int64_t number);
// Nothing, where Slurm has no value or no end.
void put_number32(struct records *to, uint32_t number);
void put_number16(struct records *to, uint16_t number);
// Nothing for a time that is not set.
void put_time(struct records *to, time_t at);
// The flags of `bits` that are set, behind the base, as `BASE+FLAG+BIT_30`.
struct flag {
	uint64_t bit;
	const char *name;
};
void put_state(struct records *to, const char *base, uint64_t flags,
	       const struct flag *known, size_t count);
void end_record(struct records *to);

// The time of a stamp; 0, for everything, where it is yet to come: the clock
// was set back, and what changed since bears times before the stamp.
time_t since_of(long stamp);

// `KIND STAMP COUNT BYTES FIELDS` and so many bytes.
void tell_records(FILE *out, struct records *made, const char *kind,
		  const char *stamp, const char *fields);
// Nothing changed since the stamp that was asked with.
void tell_same(FILE *out, const char *kind, const char *stamp);
// Slurm said no, and why.
void tell_failure(FILE *out, int error);

#endif
