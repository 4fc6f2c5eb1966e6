/* A libnvidia-ml.so.1 that does what a text file says, read again at each call.
 *
 * $NVML_STUB names the file. One order a line; later lines win; '#' starts a comment:
 *   init CODE              nvmlInit answers CODE (0 fine, 9 no driver, 18 version mismatch, 999)
 *   count N                how many GPUs there are
 *   gpu I error CODE       every question about GPU I answers CODE (15 lost, 16 reset required, 999)
 *   gpu I uuid TEXT        likewise serial TEXT and pci TEXT
 *   hang init | hang count | hang handle I      the call does not return
 *   log PATH               append the name of every call to PATH
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    char bus_id_legacy[16];
    unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} pci_info;

typedef struct {
    int code;                 /* answer of the question asked */
    int hang, count;
    char value[128];          /* text asked for */
} answer;

static void log_call(const char *path, const char *what, int index) {
    FILE *log = fopen(path, "a");
    if (log) {
        fprintf(log, "%s %d\n", what, index);
        fclose(log);
    }
}

/* Reads the script for one question: `what` is init, count, handle, uuid, serial or pci; `index` the GPU or -1. */
static answer ask(const char *what, int index) {
    answer found = {.code = 0};
    char line[256], verb[32], third[32], text[128];
    int gpu;
    const char *path = getenv("NVML_STUB");
    FILE *script = path ? fopen(path, "r") : NULL;
    if (!script) {
        found.code = 9;
        return found;
    }
    while (fgets(line, sizeof line, script)) {
        if (sscanf(line, "count %d", &gpu) == 1) found.count = gpu;
        else if (sscanf(line, "log %127s", text) == 1) log_call(text, what, index);
        else if (sscanf(line, "init %d", &gpu) == 1) { if (!strcmp(what, "init")) found.code = gpu; }
        else if (sscanf(line, "hang handle %d", &gpu) == 1) { if (!strcmp(what, "handle") && gpu == index) found.hang = 1; }
        else if (sscanf(line, "hang %31s", verb) == 1) { if (!strcmp(what, verb)) found.hang = 1; }
        else if (sscanf(line, "gpu %d %31s %127s", &gpu, third, text) == 3 && gpu == index) {
            if (!strcmp(third, "error")) found.code = atoi(text);
            else if (!strcmp(third, what)) strcpy(found.value, text);
        }
    }
    fclose(script);
    while (found.hang) sleep(1);
    return found;
}

static int text_of(const char *what, void *handle, char *out, unsigned int size, const char *otherwise) {
    int index = (int)(long)handle - 1;
    answer found = ask(what, index);
    if (!found.value[0]) snprintf(found.value, sizeof found.value, otherwise, index);
    if (!found.code) snprintf(out, size, "%s", found.value);
    return found.code;
}

int nvmlInitWithFlags(unsigned int flags) { (void)flags; return ask("init", -1).code; }
int nvmlInit_v2(void) { return ask("init", -1).code; }
int nvmlShutdown(void) { return 0; }

int nvmlDeviceGetCount_v2(unsigned int *count) {
    answer found = ask("count", -1);
    *count = (unsigned int)found.count;
    return found.code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle) {
    answer found = ask("handle", (int)index);
    *handle = (void *)(long)(index + 1);
    return (int)index < found.count ? found.code : 2;
}

int nvmlDeviceGetUUID(void *handle, char *out, unsigned int size) {
    return text_of("uuid", handle, out, size, "GPU-00000000-0000-0000-0000-%012d");
}

int nvmlDeviceGetSerial(void *handle, char *out, unsigned int size) {
    return text_of("serial", handle, out, size, "15635210204%02d");
}

int nvmlDeviceGetPciInfo_v3(void *handle, pci_info *out) {
    memset(out, 0, sizeof *out);
    return text_of("pci", handle, out->bus_id, sizeof out->bus_id, "00000000:1%d:00.0");
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
