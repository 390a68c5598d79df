#include "device.h"

#include <stdint.h>
#include <unistd.h>

#include "nvml.h"
#include "script.h"

int gpu_of(nvml_device device)
{
	return (int) (intptr_t) device - 1;
}

int answer_of(nvml_device device)
{
	while (script_has("hang"))
		pause();
	return (int) script_value(gpu_of(device), "error", NVML_SUCCESS);
}

int tell_ull(nvml_device device, const char *name, long long healthy,
	     unsigned long long *value)
{
	int error = answer_of(device);
	long long said;

	if (error)
		return error;
	said = script_value(gpu_of(device), name, healthy);
	if (said == -1)
		return NVML_ERROR_NOT_SUPPORTED;
	*value = (unsigned long long) said;
	return NVML_SUCCESS;
}

int tell_uint(nvml_device device, const char *name, long long healthy,
	      unsigned int *value)
{
	unsigned long long wide = 0;
	int error = tell_ull(device, name, healthy, &wide);

	if (!error)
		*value = (unsigned int) wide;
	return error;
}
