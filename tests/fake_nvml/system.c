/* The library as a whole, and who its GPUs are. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "nvml.h"
#include "script.h"

enum { GPUS = 8, FIRST_BUS = 0x10 };

int nvmlInitWithFlags(unsigned int flags);
int nvmlShutdown(void);
const char *nvmlErrorString(int error);
int nvmlDeviceGetCount_v2(unsigned int *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvml_device *device);
int nvmlDeviceGetUUID(nvml_device device, char *uuid, unsigned int size);
int nvmlDeviceGetName(nvml_device device, char *name, unsigned int size);
int nvmlDeviceGetSerial(nvml_device device, char *serial, unsigned int size);
int nvmlDeviceGetVbiosVersion(nvml_device device, char *version,
			      unsigned int size);
int nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci *pci);

int nvmlInitWithFlags(unsigned int flags)
{
	(void) flags;
	while (script_has("hang"))
		pause();
	return (int) script_value(-1, "init", NVML_SUCCESS);
}

int nvmlShutdown(void)
{
	return NVML_SUCCESS;
}

const char *nvmlErrorString(int error)
{
	switch (error) {
	case NVML_ERROR_NOT_SUPPORTED:
		return "Not Supported";
	case NVML_ERROR_DRIVER_NOT_LOADED:
		return "Driver Not Loaded";
	case NVML_ERROR_CORRUPTED_INFOROM:
		return "Corrupted infoROM";
	case NVML_ERROR_GPU_IS_LOST:
		return "GPU is lost";
	case NVML_ERROR_RESET_REQUIRED:
		return "GPU requires reset";
	default:
		return "Unknown Error";
	}
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
	while (script_has("hang"))
		pause();
	*count = (unsigned int) script_value(-1, "gpus", GPUS);
	return NVML_SUCCESS;
}

/* A lost GPU still has a handle, as in the real library. */
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvml_device *device)
{
	*device = (nvml_device) (intptr_t) (index + 1);
	return NVML_SUCCESS;
}

static int written(int length, unsigned int size)
{
	return length >= 0 && (unsigned int) length < size
		       ? NVML_SUCCESS
		       : NVML_ERROR_INSUFFICIENT_SIZE;
}

int nvmlDeviceGetUUID(nvml_device device, char *uuid, unsigned int size)
{
	unsigned long long seed = script_seed();

	return written(
		snprintf(uuid, size, "GPU-%08llx-%04llx-%04llx-%04x-%012x",
			 seed >> 32, (seed >> 16) & 0xffff, seed & 0xffff,
			 0xfa4e, (unsigned int) gpu_of(device)),
		size);
}

int nvmlDeviceGetName(nvml_device device, char *name, unsigned int size)
{
	(void) device;
	return written(snprintf(name, size, "NVIDIA H200"), size);
}

int nvmlDeviceGetSerial(nvml_device device, char *serial, unsigned int size)
{
	int error = answer_of(device);

	if (error)
		return error;
	return written(snprintf(serial, size, "%llu%02d",
				script_seed() % 10000000000ULL, gpu_of(device)),
		       size);
}

int nvmlDeviceGetVbiosVersion(nvml_device device, char *version,
			      unsigned int size)
{
	int error = answer_of(device);

	if (error)
		return error;
	return written(
		snprintf(version, size, "96.00.%02X.00.01",
			 (int) script_value(gpu_of(device), "vbios", 0x74)),
		size);
}

int nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci *pci)
{
	int error = answer_of(device);

	if (error)
		return error;
	memset(pci, 0, sizeof(*pci));
	pci->bus = FIRST_BUS + (unsigned int) gpu_of(device);
	return written(snprintf(pci->bus_id, sizeof(pci->bus_id),
				"00000000:%02X:00.0", pci->bus),
		       sizeof(pci->bus_id));
}
