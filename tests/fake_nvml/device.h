/*
 * What every call begins with.
 */
#ifndef FAKE_NVML_DEVICE_H
#define FAKE_NVML_DEVICE_H

/* A handle is the GPU's number and one more, so that none is NULL. */
typedef struct fake_device *nvml_device;

/* The GPU's number. */
int gpu_of(nvml_device device);

/* Sleeps for ever where the script says `hang`; then what the script makes of
 * the GPU: an error, or success. */
int answer_of(nvml_device device);

/* Puts a value of the script into *value; -1 there stands for
 * NVML_ERROR_NOT_SUPPORTED. */
int tell_uint(nvml_device device, const char *name, long long healthy,
	      unsigned int *value);
int tell_ull(nvml_device device, const char *name, long long healthy,
	     unsigned long long *value);

#endif
