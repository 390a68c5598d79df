// The questions that steward-slurm answers, each in a file of its own
// (README.md).
#ifndef STEWARD_READER_H
#define STEWARD_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <slurm/slurm.h>

enum { LONGEST_LINE = 1 << 16 };
#define NOTHING "-"

// Each writes one whole answer; false: the words are no such question, and
// nothing was written.
bool answer_fits(FILE *out, char *words[], size_t count);
bool answer_nodes(FILE *out, char *words[], size_t count);
bool answer_jobs(FILE *out, char *words[], size_t count);
bool answer_partitions(FILE *out, char *words[], size_t count);

// A decimal number that Slurm has no other meaning for.
bool is_number(const char *word, uint32_t *value);

// slurm_load_job, in every version.
int load_job(job_info_msg_t **told, uint32_t id, uint16_t show);

#endif
