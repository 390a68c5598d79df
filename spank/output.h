/*
 * Where a script's or a step's output goes.
 */
#ifndef STEWARD_OUTPUT_H
#define STEWARD_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

/* The path of this process's standard output, and how long it is already;
 * false unless it is a regular file that still has a name. */
bool output_path(char *path, size_t size, uint64_t *length);

/* Note how long the files are that this process's output and errors go to,
 * before an attempt writes there, and after it has. */
void output_begin(struct wire_log logs[WIRE_LOGS]);
void output_end(struct wire_log logs[WIRE_LOGS]);

#endif
