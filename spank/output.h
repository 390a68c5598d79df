/*
 * Where a script's output goes.
 */
#ifndef STEWARD_OUTPUT_H
#define STEWARD_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The path of this process's standard output, and how long it is already;
 * false unless it is a regular file that still has a name. */
bool output_path(char *path, size_t size, uint64_t *length);

#endif
