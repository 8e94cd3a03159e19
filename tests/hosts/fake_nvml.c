/* As much of NVIDIA's management library as allaboard asks for, with the symbols and structures of nvml.h:
   two GPUs, of which the second knows little, as cheap models do. FAKE_NVML says what is wrong with it:
   "mismatch" (the kernel module is of another driver), "hang" (the driver does not answer), "lost" (the
   second GPU has fallen off the bus), "xid" (the first GPU reports three errors, two of them alike, the second
   one none), "xid-lost" (one error, then the GPU is gone). FAKE_NVML_PID holds memory on the first GPU. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, TIMEOUT = 10, GPU_IS_LOST = 15, MISMATCH = 18 };

typedef unsigned long long u64;
struct device { int index; };
typedef struct device *Device;
struct memory { u64 total, free, used; };
struct utilization { unsigned gpu, memory; };
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };
struct process { unsigned pid; u64 memory; unsigned gpu_instance, compute_instance; };

static int waits;
static struct device devices[] = {{0}, {1}};

static int is(const char *fault) {
    const char *set = getenv("FAKE_NVML");
    return set != NULL && strcmp(set, fault) == 0;
}

static int known(Device device) { return device->index == 0 ? SUCCESS : NOT_SUPPORTED; }

int nvmlInitWithFlags(unsigned flags) { return is("mismatch") ? MISMATCH : SUCCESS; }

int nvmlDeviceGetCount_v2(unsigned *count) {
    while (is("hang")) sleep(1);
    *count = 2;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device) {
    if ((index == 1 && is("lost")) || (index == 0 && is("xid-lost") && waits)) return GPU_IS_LOST;
    *device = &devices[index];
    return SUCCESS;
}

int nvmlDeviceGetIndex(Device device, unsigned *index) { *index = device->index; return SUCCESS; }

struct event { Device device; u64 type, data; unsigned gpu_instance, compute_instance; };

int nvmlEventSetCreate(void **set) { *set = &waits; return SUCCESS; }
int nvmlDeviceRegisterEvents(Device device, u64 types, void *set) { return types == 8 ? known(device) : NOT_SUPPORTED; }

int nvmlEventSetWait_v2(void *set, struct event *event, unsigned timeout_ms) {
    static const unsigned numbers[] = {79, 79, 154};
    int lost = is("xid-lost");
    if ((is("xid") && waits < 3) || (lost && waits < 1)) {
        memset(event, 0, sizeof *event);
        event->device = &devices[0];
        event->type = 8;
        event->data = numbers[waits++];
        return SUCCESS;
    }
    if (lost) return GPU_IS_LOST;
    usleep(timeout_ms * 1000);
    return TIMEOUT;
}

int nvmlDeviceGetName(Device device, char *name, unsigned length) {
    snprintf(name, length, device->index == 0 ? "NVIDIA H100 80GB HBM3" : "NVIDIA T400");
    return SUCCESS;
}

int nvmlDeviceGetUUID(Device device, char *uuid, unsigned length) {
    snprintf(uuid, length, "GPU-%d", device->index);
    return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(Device device, struct pci *pci) {
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:1%d:00.0", device->index);
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(Device device, struct memory *memory) {
    memory->total = 80000000000ULL;
    memory->used = 60000000000ULL;
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(Device device, struct utilization *rates) {
    rates->gpu = 97;
    rates->memory = 40;
    return known(device);
}

int nvmlDeviceGetTemperature(Device device, int sensor, unsigned *celsius) { *celsius = 88; return SUCCESS; }
int nvmlDeviceGetPowerUsage(Device device, unsigned *milliwatts) { *milliwatts = 350500; return known(device); }
int nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned *milliwatts) { *milliwatts = 700000; return known(device); }
int nvmlDeviceGetClockInfo(Device device, int kind, unsigned *mhz) { *mhz = 345; return SUCCESS; }
int nvmlDeviceGetMaxClockInfo(Device device, int kind, unsigned *mhz) { *mhz = 1980; return SUCCESS; }

int nvmlDeviceGetCurrentClocksThrottleReasons(Device device, u64 *reasons) {
    *reasons = device->index == 0 ? 0x4 | 0x40 : 0x1; /* power cap and heat; idle */
    return SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(Device device, int type, int counter, u64 *count) { *count = 2; return known(device); }
int nvmlDeviceGetPcieReplayCounter(Device device, unsigned *count) { *count = 5; return known(device); }
int nvmlDeviceGetCurrPcieLinkWidth(Device device, unsigned *lanes) { *lanes = 8; return SUCCESS; }
int nvmlDeviceGetMaxPcieLinkWidth(Device device, unsigned *lanes) { *lanes = 16; return SUCCESS; }

int nvmlDeviceGetNvLinkState(Device device, unsigned link, int *active) {
    *active = link < 2;
    return known(device);
}

int nvmlDeviceGetNvLinkErrorCounter(Device device, unsigned link, int kind, u64 *count) {
    *count = link == 1 && kind == 0 ? 7 : 0;
    return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned *count, struct process *found) {
    const char *pid = getenv("FAKE_NVML_PID");
    unsigned room = *count;
    *count = pid != NULL && device->index == 0;
    if (room < *count) return INSUFFICIENT_SIZE;
    if (*count) {
        memset(found, 0, sizeof *found);
        found->pid = (unsigned)atoi(pid);
        found->memory = 30000000000ULL;
    }
    return SUCCESS;
}
