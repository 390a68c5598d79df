/*
 * What the pretended GPUs have: a file of lines, read anew at every call, so
 *that a test changes it as it likes.
 *
 *	gpus 7			how many there are (8)
 *	init 9			nvmlInit fails with this error
 *	hang			every call sleeps for ever
 *	N NAME VALUE		GPU N has this value; '*' for N is every GPU
 *	N error 15		every call about GPU N fails with this error
 *	N process PID MIB	a process that uses GPU N
 *
 * FAKE_NVML names the file; an absent one means eight healthy GPUs.
 *FAKE_NVML_SEED names a file whose content makes the GPUs' UUIDs and serials,
 *so that another machine has other GPUs.
 */
#ifndef FAKE_NVML_SCRIPT_H
#define FAKE_NVML_SCRIPT_H

#include <stdbool.h>

/* The value of NAME for GPU `gpu`, or of the whole machine for -1; `otherwise`
 * where the file says nothing of it. */
long long script_value(int gpu, const char *name, long long otherwise);

/* Whether the file has the word alone on a line. */
bool script_has(const char *word);

/* The number-th process of a GPU (from 0); false when there is none. */
bool script_process(int gpu, int number, unsigned int *pid,
		    unsigned long long *mib);

/* A number that differs from machine to machine. */
unsigned long long script_seed(void);

#endif
