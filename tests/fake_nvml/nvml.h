/*
 * The part of NVML's interface that Steward uses, from NVIDIA's public
 * documentation. All calls return an nvmlReturn_t.
 */
#ifndef FAKE_NVML_H
#define FAKE_NVML_H

enum nvml_return {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_ERROR_DRIVER_NOT_LOADED = 9,
	NVML_ERROR_CORRUPTED_INFOROM = 14,
	NVML_ERROR_GPU_IS_LOST = 15,
	NVML_ERROR_RESET_REQUIRED = 16,
};

struct nvml_value {
	unsigned int field;
	unsigned int scope;
	long long timestamp;
	long long latency_us;
	unsigned int type;
	int result;
	unsigned long long value;
};

enum { NVML_UNSIGNED_INT = 1, NVML_UNSIGNED_LONG_LONG = 3 };

struct nvml_pci {
	char legacy_bus[16];
	unsigned int domain, bus, device, id, subsystem;
	char bus_id[32];
};

struct nvml_use {
	unsigned int gpu, memory;
};

struct nvml_memory {
	unsigned long long total, free, used;
};

struct nvml_memory_v2 {
	unsigned int version;
	unsigned long long total, reserved, free, used;
};

struct nvml_process {
	unsigned int pid;
	unsigned long long used;
	unsigned int gpu_instance, compute_instance;
};

struct nvml_margin {
	unsigned int version;
	int margin;
};

struct nvml_sram {
	unsigned int version;
	unsigned long long lifetime_parity, lifetime_secded, lifetime_corrected;
	unsigned long long volatile_parity, volatile_secded, volatile_corrected;
	unsigned long long buckets[5];
	unsigned int limit_exceeded;
};

struct nvml_fabric {
	unsigned int version;
	unsigned char cluster[16];
	int status;
	unsigned int clique;
	unsigned char state;
	unsigned int health;
};

#endif
