/* What a GPU says of its health. */
#include <string.h>

#include "device.h"
#include "nvml.h"
#include "script.h"

enum {
	LINKS = 18,
	MIB = 1 << 20,
	TOTAL_MIB = 143771,
	RESERVED_MIB = 600,
	FABRIC_DONE = 3
};

struct field {
	unsigned int id;
	const char *name;
	long long healthy;
};

static const struct field FIELDS[] = {
	{4, "ecc_uncorrected", 0},     {29, "retired", -1},
	{30, "retired_double", -1},    {31, "retire_pending", -1},
	{94, "pcie_replays", 0},       {142, "remapped_corrected", 0},
	{143, "remapped", 0},	       {144, "remap_pending", 0},
	{145, "remap_failed", 0},      {161, "nvlink_replays", 0},
	{162, "nvlink_recoveries", 0}, {163, "nvlink_crc", 0},
	{230, "recovery_action", 0},
};

int nvmlDeviceGetFieldValues(nvml_device device, int count,
			     struct nvml_value *values);
int nvmlDeviceGetMemoryErrorCounter(nvml_device device, int kind, int since,
				    int location, unsigned long long *count);
int nvmlDeviceGetSramEccErrorStatus(nvml_device device, struct nvml_sram *sram);
int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory);
int nvmlDeviceGetMemoryInfo_v2(nvml_device device,
			       struct nvml_memory_v2 *memory);
int nvmlDeviceGetTemperature(nvml_device device, int sensor,
			     unsigned int *celsius);
int nvmlDeviceGetTemperatureThreshold(nvml_device device, int threshold,
				      unsigned int *celsius);
int nvmlDeviceGetMarginTemperature(nvml_device device,
				   struct nvml_margin *margin);
int nvmlDeviceGetCurrentClocksEventReasons(nvml_device device,
					   unsigned long long *reasons);
int nvmlDeviceGetNvLinkState(nvml_device device, unsigned int link,
			     unsigned int *active);
int nvmlDeviceGetCurrPcieLinkWidth(nvml_device device, unsigned int *width);
int nvmlDeviceGetMaxPcieLinkWidth(nvml_device device, unsigned int *width);
int nvmlDeviceGetGpuFabricInfoV(nvml_device device, struct nvml_fabric *fabric);
int nvmlDeviceGetPersistenceMode(nvml_device device, unsigned int *mode);
int nvmlDeviceGetUtilizationRates(nvml_device device, struct nvml_use *use);
int nvmlDeviceGetTotalEnergyConsumption(nvml_device device,
					unsigned long long *millijoules);
int nvmlDeviceValidateInforom(nvml_device device);
int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device,
					    unsigned int *count,
					    struct nvml_process *found);

static void tell_field(nvml_device device, struct nvml_value *value)
{
	unsigned int known;

	value->type = NVML_UNSIGNED_LONG_LONG;
	value->result = NVML_ERROR_NOT_SUPPORTED;
	for (known = 0; known < sizeof(FIELDS) / sizeof(FIELDS[0]); known++)
		if (FIELDS[known].id == value->field)
			value->result =
				tell_ull(device, FIELDS[known].name,
					 FIELDS[known].healthy, &value->value);
}

int nvmlDeviceGetFieldValues(nvml_device device, int count,
			     struct nvml_value *values)
{
	int error = answer_of(device), number;

	if (error)
		return error;
	for (number = 0; number < count; number++)
		tell_field(device, &values[number]);
	return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryErrorCounter(nvml_device device, int kind, int since,
				    int location, unsigned long long *count)
{
	(void) kind;
	(void) since;
	return tell_ull(device,
			location == 2 ? "corrected_dram" : "corrected_sram", 0,
			count);
}

int nvmlDeviceGetSramEccErrorStatus(nvml_device device, struct nvml_sram *sram)
{
	int error =
		tell_ull(device, "sram_uncorrected", 0, &sram->lifetime_parity);

	return error ? error
		     : tell_uint(device, "sram_limit", 0,
				 &sram->limit_exceeded);
}

int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory)
{
	int error = tell_ull(device, "used_mib", 0, &memory->used);

	memory->total = (unsigned long long) TOTAL_MIB * MIB;
	memory->used = (memory->used + RESERVED_MIB) * MIB;
	memory->free = memory->total - memory->used;
	return error;
}

int nvmlDeviceGetMemoryInfo_v2(nvml_device device,
			       struct nvml_memory_v2 *memory)
{
	int error = tell_ull(device, "used_mib", 0, &memory->used);

	memory->total = (unsigned long long) TOTAL_MIB * MIB;
	memory->reserved = (unsigned long long) RESERVED_MIB * MIB;
	memory->used *= MIB;
	memory->free = memory->total - memory->used - memory->reserved;
	return error;
}

int nvmlDeviceGetTemperature(nvml_device device, int sensor,
			     unsigned int *celsius)
{
	(void) sensor;
	return tell_uint(device, "temperature", 34, celsius);
}

int nvmlDeviceGetTemperatureThreshold(nvml_device device, int threshold,
				      unsigned int *celsius)
{
	(void) threshold;
	return tell_uint(device, "slowdown", 92, celsius);
}

int nvmlDeviceGetMarginTemperature(nvml_device device,
				   struct nvml_margin *margin)
{
	unsigned int degrees = 0;
	int error = tell_uint(device, "margin", 53, &degrees);

	margin->margin = (int) degrees;
	return error;
}

int nvmlDeviceGetCurrentClocksEventReasons(nvml_device device,
					   unsigned long long *reasons)
{
	return tell_ull(device, "clock_reasons", 1, reasons);
}

int nvmlDeviceGetNvLinkState(nvml_device device, unsigned int link,
			     unsigned int *active)
{
	long long links = script_value(gpu_of(device), "nvlinks", LINKS);

	if (link >= (unsigned int) links)
		return NVML_ERROR_INVALID_ARGUMENT;
	*active = (long long) link >=
		  script_value(gpu_of(device), "nvlinks_down", 0);
	return answer_of(device);
}

int nvmlDeviceGetCurrPcieLinkWidth(nvml_device device, unsigned int *width)
{
	return tell_uint(device, "pcie_width", 16, width);
}

int nvmlDeviceGetMaxPcieLinkWidth(nvml_device device, unsigned int *width)
{
	return tell_uint(device, "pcie_width_max", 16, width);
}

int nvmlDeviceGetGpuFabricInfoV(nvml_device device, struct nvml_fabric *fabric)
{
	unsigned int state = 0;
	int error = tell_uint(device, "fabric_state", FABRIC_DONE, &state);

	fabric->state = (unsigned char) state;
	fabric->status = (int) script_value(gpu_of(device), "fabric_status",
					    NVML_SUCCESS);
	fabric->health =
		(unsigned int) script_value(gpu_of(device), "fabric_health", 0);
	return error;
}

int nvmlDeviceGetPersistenceMode(nvml_device device, unsigned int *mode)
{
	return tell_uint(device, "persistence", 1, mode);
}

int nvmlDeviceGetUtilizationRates(nvml_device device, struct nvml_use *use)
{
	int error = tell_uint(device, "busy", 0, &use->gpu);

	return error ? error
		     : tell_uint(device, "memory_busy", 0, &use->memory);
}

int nvmlDeviceGetTotalEnergyConsumption(nvml_device device,
					unsigned long long *millijoules)
{
	return tell_ull(device, "energy", 0, millijoules);
}

int nvmlDeviceValidateInforom(nvml_device device)
{
	int error = answer_of(device);

	return error ? error
		     : (int) script_value(gpu_of(device), "inforom",
					  NVML_SUCCESS);
}

int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device,
					    unsigned int *count,
					    struct nvml_process *found)
{
	int error = answer_of(device);
	unsigned int there = 0, pid;
	unsigned long long mib;

	for (;
	     !error && script_process(gpu_of(device), (int) there, &pid, &mib);
	     there++)
		if (found && there < *count)
			found[there] = (struct nvml_process){.pid = pid,
							     .used = mib * MIB};
	if (!error && (there > *count || (there && !found)))
		error = NVML_ERROR_INSUFFICIENT_SIZE;
	*count = there;
	return error;
}
