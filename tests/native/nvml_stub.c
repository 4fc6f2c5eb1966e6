/* A libnvidia-ml.so.1 that does what a text file says, read again at each call.
 *
 * $NVML_STUB names the file. One order a line; later lines win; '#' starts a comment:
 *   init CODE                   nvmlInit answers CODE (0 fine, 9 no driver, 18 version mismatch, 999)
 *   driver VALUE                its version, or error:CODE
 *   count N                     how many GPUs there are
 *   gpu I error CODE            every question about GPU I answers CODE (15 lost, 16 reset required, 999)
 *   gpu I QUESTION VALUE        what GPU I answers to QUESTION
 *   gpu I QUESTION error:CODE   GPU I refuses QUESTION (3 not supported, 4 no permission, 13 no such function)
 *   hang init | hang driver | hang count | hang QUESTION [I]   the call does not return, for GPU I or for every one
 *   log PATH                    append the name of every call to PATH
 *
 * Questions and their values; several numbers are divided by commas, those left out are 0. What no order names is
 * answered as a healthy data-centre GPU would, which has no retired pages (error:3) but remaps rows:
 *   handle                      the handle of the GPU, only to be refused
 *   pci, uuid, serial           text
 *   part, inforom               text: part number of the board, version of its InfoROM
 *   ecc-mode                    current,pending: 1 on, 0 off
 *   uncorrected, corrected      errors since the driver loaded
 *   uncorrected-ever, corrected-ever
 *   remapped                    rows remapped after corrected errors, after uncorrected ones, pending 0|1, failed 0|1
 *   spare-rows                  banks by spare rows left: max,high,partial,low,none
 *   sram                        threshold exceeded 0|1, uncorrected errors ever by parity, by SEC-DED
 *   unrepairable                0|1
 *   retired                     pages retired after single bit errors, after a double bit error
 *   retirement-pending          0|1
 *   fields                      all fields, only to be refused
 *   field-ID, field-ID.LINK     number in the field ID, of one link of NVLink; those of the table below have a value of
 *                               their own, others are refused (error:3)
 *   clocks                      bits that say why the clocks are low; 1 idle
 *   clocks-event                the newer name of that call, only to be refused
 *   margin                      degrees until the GPU slows down
 *   nvlink, nvlink-remote       a digit for each link: 1 up, 0 down; 0 GPU, 2 switch at its other end
 *   fabric                      state (3 completed),status,mask of health
 *   fabric-v                    the newer name of that call, only to be refused
 *   compute, graphics, mps      processes as PID:BYTES, divided by commas
 *   memory                      bytes in use
 *   rates                       percent of the time now in which kernels ran, in which memory was read or written
 *   samples                     the highest sample of the last time: kernels, memory, encoder, decoder
 *   memory-v2                   the newer name of that call, only to be refused
 *   mig                         current,pending: 1 on, 0 off
 *   mig-devices                 UUIDs of its MIG devices, divided by commas
 *   pcie                        generation and lanes at most, lanes now
 *   persistence                 1 on, 0 off
 *   power-limit                 mW
 *   max-clocks, app-clocks      MHz: SM, memory
 *   nvlink-pci                  PCI address of the GPU at the other end of every link
 *
 * remediator_sim/nvml/pynvml.py obeys the same orders without this library.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 5, INVALID_ARGUMENT = 2, INSUFFICIENT_SIZE = 7, OLD_STRUCT = 25 };

typedef struct {
    char bus_id_legacy[16];
    unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} pci_info;

typedef struct {
    unsigned int version;
    unsigned long long unc_parity, unc_secded, cor, volatile_unc_parity, volatile_unc_secded, volatile_cor, buckets[5];
    unsigned int threshold_exceeded;
} sram_status;

typedef struct {
    unsigned int id, scope;
    int64_t timestamp, latency;
    unsigned int type, code;
    union { unsigned int number; unsigned long long widest; } value;
} field_value;

typedef struct { unsigned int version, pad; unsigned long long total, reserved, free, used; } memory_v2;
typedef struct { unsigned long long total, free, used; } memory_v1;
typedef struct { unsigned int version; int margin; } heat_margin;
typedef struct { unsigned char cluster[16]; unsigned int status, clique, state; } fabric_v1;
typedef struct { unsigned int version; fabric_v1 info; unsigned int health; } fabric_v2;
typedef struct { unsigned int gpu, memory; } rates;
typedef struct { unsigned long long at; union { unsigned int number; unsigned long long widest; } value; } sample;
typedef struct { unsigned int pid, pad; unsigned long long memory; unsigned int gpu_instance, compute_instance; } process;

/* Fields that have a value where no order names them. Types: 1 unsigned int, 3 unsigned long long, 5 signed int. */
static const struct { unsigned int id, type; const char *otherwise; } FIELDS[] = {
    {38, 3, "0"}, {45, 3, "0"}, {52, 3, "0"}, {59, 3, "0"},        /* errors of all NVLinks */
    {161, 3, "0"}, {162, 3, "0"}, {163, 3, "0"}, {214, 3, "0"},    /* errors of one NVLink */
    {194, 5, "-2"},                                                /* margin at which the GPU slows down */
    {230, 1, "0"},                                                 /* recovery action */
    {270, 3, "0"}, {271, 3, "0"},                                  /* nanoseconds slowed down: heat, power brake */
};

typedef struct {
    int code;                 /* answer of the question asked */
    int hang, count;
    char value[128];          /* what was asked for */
    unsigned long long numbers[MOST];
} answer;

static void log_call(const char *path, const char *what, int index) {
    FILE *log = fopen(path, "a");
    if (log) {
        fprintf(log, "%s %d\n", what, index);
        fclose(log);
    }
}

static void read_value(answer *found) {
    char *next = found->value;
    if (!strncmp(next, "error:", 6)) {
        if (!found->code) found->code = atoi(next + 6);
        return;
    }
    for (int i = 0; i < MOST && *next; i++) {
        found->numbers[i] = strtoull(next, &next, 10);
        if (*next == ',') next++;
    }
}

/* Reads the script for one question: `what` is init, count or a question about the GPU `index` (else -1). */
static answer ask(const char *what, int index, const char *otherwise) {
    answer found = {.code = 0};
    char line[256], name[32], text[128];
    int number, matched;
    const char *path = getenv("NVML_STUB");
    FILE *script = path ? fopen(path, "r") : NULL;
    if (!script) {
        found.code = 9;
        return found;
    }
    snprintf(found.value, sizeof found.value, "%s", otherwise);
    while (fgets(line, sizeof line, script)) {
        if (sscanf(line, " count %d", &number) == 1) found.count = number;
        else if (sscanf(line, " log %127s", text) == 1) log_call(text, what, index);
        else if (sscanf(line, " driver %127s", text) == 1) { if (!strcmp(what, "driver")) strcpy(found.value, text); }
        else if (sscanf(line, " init %d", &number) == 1) { if (!strcmp(what, "init")) found.code = number; }
        else if ((matched = sscanf(line, " hang %31s %d", name, &number)) >= 1) {
            if (!strcmp(what, name) && (matched == 1 || number == index)) found.hang = 1;
        } else if (sscanf(line, " gpu %d %31s %127s", &number, name, text) == 3 && number == index) {
            if (!strcmp(name, "error")) found.code = atoi(text);
            else if (!strcmp(name, what)) strcpy(found.value, text);
        }
    }
    fclose(script);
    while (found.hang) sleep(1);
    read_value(&found);
    return found;
}

enum { PER_MIG = 1000 }; /* the handle of a MIG device is that of its GPU and so much for each device */
static int index_of(void *handle) { return (int)((long)handle % PER_MIG) - 1; }

static answer ask_gpu(const char *what, void *handle, const char *otherwise) {
    return ask(what, index_of(handle), otherwise);
}

static int text_of(const char *what, void *handle, char *out, unsigned int size, const char *otherwise) {
    char text[128];
    snprintf(text, sizeof text, otherwise, index_of(handle));
    answer found = ask_gpu(what, handle, text);
    if (!found.code) snprintf(out, size, "%s", found.value);
    return found.code;
}

int nvmlInitWithFlags(unsigned int flags) { (void)flags; return ask("init", -1, "").code; }
int nvmlInit_v2(void) { return ask("init", -1, "").code; }
int nvmlShutdown(void) { return 0; }

int nvmlSystemGetDriverVersion(char *out, unsigned int size) {
    answer found = ask("driver", -1, "570.86.15");
    if (!found.code) snprintf(out, size, "%s", found.value);
    return found.code;
}

int nvmlDeviceGetCount_v2(unsigned int *count) {
    answer found = ask("count", -1, "");
    *count = (unsigned int)found.count;
    return found.code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle) {
    answer found = ask("handle", (int)index, "");
    *handle = (void *)(long)(index + 1);
    return (int)index < found.count ? found.code : INVALID_ARGUMENT;
}

static int mig_uuid(void *handle, char *out, unsigned int size) {
    answer found = ask_gpu("mig-devices", handle, "");
    char *next = strtok(found.value, ",");
    for (long device = (long)handle / PER_MIG; --device && next;) next = strtok(NULL, ",");
    if (next) snprintf(out, size, "%s", next);
    return found.code ? found.code : next ? 0 : 6;
}

int nvmlDeviceGetUUID(void *handle, char *out, unsigned int size) {
    if ((long)handle >= PER_MIG) return mig_uuid(handle, out, size);
    return text_of("uuid", handle, out, size, "GPU-00000000-0000-0000-0000-%012d");
}

int nvmlDeviceGetSerial(void *handle, char *out, unsigned int size) {
    return text_of("serial", handle, out, size, "15635210204%02d");
}

int nvmlDeviceGetBoardPartNumber(void *handle, char *out, unsigned int size) {
    return text_of("part", handle, out, size, "900-21010-00%02d-000");
}

int nvmlDeviceGetInforomImageVersion(void *handle, char *out, unsigned int size) {
    return text_of("inforom", handle, out, size, "1010.0200.00.%02d");
}

int nvmlDeviceGetPciInfo_v3(void *handle, pci_info *out) {
    memset(out, 0, sizeof *out);
    return text_of("pci", handle, out->bus_id, sizeof out->bus_id, "00000000:1%d:00.0");
}

int nvmlDeviceGetEccMode(void *handle, unsigned int *current, unsigned int *pending) {
    answer found = ask_gpu("ecc-mode", handle, "1,1");
    *current = (unsigned int)found.numbers[0];
    *pending = (unsigned int)found.numbers[1];
    return found.code;
}

int nvmlDeviceGetTotalEccErrors(void *handle, unsigned uncorrected, unsigned aggregate, unsigned long long *out) {
    static const char *names[2][2] = {{"corrected", "corrected-ever"}, {"uncorrected", "uncorrected-ever"}};
    if (uncorrected > 1 || aggregate > 1) return INVALID_ARGUMENT;
    answer found = ask_gpu(names[uncorrected][aggregate], handle, "0");
    *out = found.numbers[0];
    return found.code;
}

int nvmlDeviceGetRemappedRows(void *handle, unsigned *cor, unsigned *unc, unsigned *pending, unsigned *failed) {
    unsigned *out[4] = {cor, unc, pending, failed};
    answer found = ask_gpu("remapped", handle, "0");
    for (int i = 0; i < 4; i++) *out[i] = (unsigned)found.numbers[i];
    return found.code;
}

int nvmlDeviceGetRowRemapperHistogram(void *handle, unsigned int out[MOST]) {
    answer found = ask_gpu("spare-rows", handle, "640");
    for (int i = 0; i < MOST; i++) out[i] = (unsigned int)found.numbers[i];
    return found.code;
}

int nvmlDeviceGetSramEccErrorStatus(void *handle, sram_status *out) {
    answer found = ask_gpu("sram", handle, "0");
    if (out->version != (sizeof *out | 1 << 24)) return OLD_STRUCT;
    out->threshold_exceeded = (unsigned int)found.numbers[0];
    out->unc_parity = found.numbers[1];
    out->unc_secded = found.numbers[2];
    return found.code;
}

int nvmlDeviceGetUnrepairableMemoryFlag_v1(void *handle, unsigned int out[2]) {
    answer found = ask_gpu("unrepairable", handle, "0");
    if (out[0] != (8 | 1 << 24)) return OLD_STRUCT;
    out[1] = (unsigned int)found.numbers[0];
    return found.code;
}

/* Answers the number of pages; their addresses, made up, where `pages` has room for them. */
int nvmlDeviceGetRetiredPages(void *handle, unsigned int cause, unsigned int *count, unsigned long long *pages) {
    answer found = ask_gpu("retired", handle, "error:3");
    unsigned int room = *count;
    if (cause > 1) return INVALID_ARGUMENT;
    if (found.code) return found.code;
    *count = (unsigned int)found.numbers[cause];
    if (*count && (!pages || room < *count)) return INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < *count; i++) pages[i] = 0x1000ull * (i + 1);
    return 0;
}

int nvmlDeviceGetRetiredPagesPendingStatus(void *handle, unsigned int *pending) {
    answer found = ask_gpu("retirement-pending", handle, "error:3");
    *pending = (unsigned int)found.numbers[0];
    return found.code;
}

static void fill_field(void *handle, field_value *field) {
    char what[32];
    const char *otherwise = "error:3";
    field->type = 1;
    for (unsigned int i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++)
        if (FIELDS[i].id == field->id) {
            field->type = FIELDS[i].type;
            otherwise = FIELDS[i].otherwise;
        }
    snprintf(what, sizeof what, field->scope ? "field-%u.%u" : "field-%u", field->id, field->scope);
    answer found = ask_gpu(what, handle, otherwise);
    field->code = (unsigned int)found.code;
    field->value.widest = found.numbers[0];
}

int nvmlDeviceGetFieldValues(void *handle, int count, field_value *values) {
    answer gpu = ask_gpu("fields", handle, "0");
    for (int i = 0; i < count && !gpu.code; i++) fill_field(handle, &values[i]);
    return gpu.code;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *out) {
    answer found = ask_gpu("clocks", handle, "1");
    *out = found.numbers[0];
    return found.code;
}

int nvmlDeviceGetCurrentClocksEventReasons(void *handle, unsigned long long *out) {
    answer newer = ask_gpu("clocks-event", handle, "0");
    return newer.code ? newer.code : nvmlDeviceGetCurrentClocksThrottleReasons(handle, out);
}

int nvmlDeviceGetMarginTemperature(void *handle, heat_margin *out) {
    answer found = ask_gpu("margin", handle, "30");
    if (out->version != (sizeof *out | 1 << 24)) return OLD_STRUCT;
    out->margin = (int)found.numbers[0];
    return found.code;
}

static int digit_of(const char *what, void *handle, unsigned int link, unsigned int *out, const char *otherwise) {
    answer found = ask_gpu(what, handle, otherwise);
    if (found.code) return found.code;
    if (link >= strlen(found.value)) return INVALID_ARGUMENT;
    *out = (unsigned int)(found.value[link] - '0');
    return 0;
}

int nvmlDeviceGetNvLinkState(void *handle, unsigned int link, unsigned int *up) {
    return digit_of("nvlink", handle, link, up, "111111111111111111");
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void *handle, unsigned int link, unsigned int *type) {
    return digit_of("nvlink-remote", handle, link, type, "222222222222222222");
}

int nvmlDeviceGetGpuFabricInfo(void *handle, fabric_v1 *out) {
    answer found = ask_gpu("fabric", handle, "3,0,426");
    out->state = (unsigned int)found.numbers[0];
    out->status = (unsigned int)found.numbers[1];
    return found.code;
}

int nvmlDeviceGetGpuFabricInfoV(void *handle, fabric_v2 *out) {
    answer newer = ask_gpu("fabric-v", handle, "0"), found = ask_gpu("fabric", handle, "3,0,426");
    if (newer.code) return newer.code;
    if (out->version != (sizeof *out | 2 << 24)) return OLD_STRUCT;
    out->health = (unsigned int)found.numbers[2];
    return nvmlDeviceGetGpuFabricInfo(handle, &out->info);
}

static int processes_of(const char *what, void *handle, unsigned int *count, process *out) {
    answer found = ask_gpu(what, handle, "");
    unsigned int room = *count;
    char *next = found.value;
    if (found.code) return found.code;
    for (*count = 0; *next; ++*count) {
        process one = {.pid = (unsigned int)strtoul(next, &next, 10), .gpu_instance = -1u, .compute_instance = -1u};
        if (*next == ':') one.memory = strtoull(next + 1, &next, 10);
        if (*count < room) out[*count] = one;
        next += strcspn(next, ",");
        next += *next == ',';
    }
    return *count > room ? INSUFFICIENT_SIZE : 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned int *count, process *out) {
    return processes_of("compute", handle, count, out);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *handle, unsigned int *count, process *out) {
    return processes_of("graphics", handle, count, out);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *handle, unsigned int *count, process *out) {
    return processes_of("mps", handle, count, out);
}

int nvmlDeviceGetMemoryInfo(void *handle, memory_v1 *out) {
    answer found = ask_gpu("memory", handle, "0");
    out->used = found.numbers[0];
    return found.code;
}

int nvmlDeviceGetMemoryInfo_v2(void *handle, memory_v2 *out) {
    answer newer = ask_gpu("memory-v2", handle, "0"), found = ask_gpu("memory", handle, "0");
    if (newer.code) return newer.code;
    if (out->version != (sizeof *out | 2 << 24)) return OLD_STRUCT;
    out->used = found.numbers[0];
    return found.code;
}

int nvmlDeviceGetUtilizationRates(void *handle, rates *out) {
    answer found = ask_gpu("rates", handle, "0,0");
    out->gpu = (unsigned int)found.numbers[0];
    out->memory = (unsigned int)found.numbers[1];
    return found.code;
}

/* Two samples of each kind, of which the first is 0. */
int nvmlDeviceGetSamples(void *handle, int kind, unsigned long long after, int *type, unsigned int *count, sample *out) {
    answer found = ask_gpu("samples", handle, "0,0,0,0");
    (void)after;
    if (kind < 1 || kind > 4) return INVALID_ARGUMENT;
    *type = 1;
    *count = 2;
    if (!out || found.code) return found.code;
    memset(out, 0, 2 * sizeof *out);
    out[1].value.number = (unsigned int)found.numbers[kind - 1];
    return 0;
}

int nvmlDeviceGetMigMode(void *handle, unsigned int *current, unsigned int *pending) {
    answer found = ask_gpu("mig", handle, "0,0");
    *current = (unsigned int)found.numbers[0];
    *pending = (unsigned int)found.numbers[1];
    return found.code;
}

int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned int *count) {
    answer found = ask_gpu("mig", handle, "0,0");
    *count = 7;
    return found.code;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned int index, void **out) {
    char uuid[128];
    *out = (void *)((long)handle + PER_MIG * (long)(index + 1));
    return mig_uuid(*out, uuid, sizeof uuid);
}

static int pcie(void *handle, int which, unsigned int *out) {
    answer found = ask_gpu("pcie", handle, "5,16,16");
    *out = (unsigned int)found.numbers[which];
    return found.code;
}

int nvmlDeviceGetMaxPcieLinkGeneration(void *handle, unsigned int *out) { return pcie(handle, 0, out); }
int nvmlDeviceGetMaxPcieLinkWidth(void *handle, unsigned int *out) { return pcie(handle, 1, out); }
int nvmlDeviceGetCurrPcieLinkWidth(void *handle, unsigned int *out) { return pcie(handle, 2, out); }

int nvmlDeviceGetPersistenceMode(void *handle, unsigned int *mode) {
    answer found = ask_gpu("persistence", handle, "1");
    *mode = (unsigned int)found.numbers[0];
    return found.code;
}

int nvmlDeviceGetPowerManagementLimit(void *handle, unsigned int *limit) {
    answer found = ask_gpu("power-limit", handle, "700000");
    *limit = (unsigned int)found.numbers[0];
    return found.code;
}

static int clock_of(const char *what, void *handle, unsigned int kind, unsigned int *out) {
    answer found = ask_gpu(what, handle, "1980,2619");
    *out = (unsigned int)found.numbers[kind == 2]; /* of the memory, else of the SM */
    return found.code;
}

int nvmlDeviceGetMaxClockInfo(void *handle, unsigned int kind, unsigned int *out) {
    return clock_of("max-clocks", handle, kind, out);
}

int nvmlDeviceGetApplicationsClock(void *handle, unsigned int kind, unsigned int *out) {
    return clock_of("app-clocks", handle, kind, out);
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *handle, unsigned int link, pci_info *out) {
    (void)link;
    memset(out, 0, sizeof *out);
    return text_of("nvlink-pci", handle, out->bus_id, sizeof out->bus_id, "error:3");
}

const char *nvmlErrorString(int code) {
    switch (code) {
    case 0: return "Success";
    case 9: return "Driver Not Loaded";
    case 15: return "GPU is lost";
    case 16: return "GPU requires reset";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}
