/* A libcuda.so.1 whose GPUs keep their memory here and multiply two matrices as the kernel that they are given would.
 *
 * $CUDA_STUB names a text file, read once; one order a line:
 *   init CODE              cuInit answers CODE (0 fine, 100 no device, 999)
 *   count N                how many GPUs there are
 *   free MIB               free memory of each (4096)
 *   forgets I              a bit of what is written to GPU I is lost
 *   miscalculates I        one number of a product of GPU I is wrong
 *   refuses FUNCTION CODE  every call of FUNCTION answers CODE
 *   hang FUNCTION          the call does not return
 *   reads VERSION          only kernels with this .version are read, others are invalid (218)
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int init_code, gpus = 1, forgets = -1, miscalculates = -1, refusal, current, loaded;
static size_t free_mib = 4096;
static char refuses[64], hangs[64], version[16];

__attribute__((constructor)) static void read_orders(void) {
    char line[256], word[64];
    FILE *file = getenv("CUDA_STUB") ? fopen(getenv("CUDA_STUB"), "r") : NULL;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "init %d", &init_code) || sscanf(line, "count %d", &gpus) || sscanf(line, "free %zu", &free_mib) ||
            sscanf(line, "forgets %d", &forgets) || sscanf(line, "miscalculates %d", &miscalculates) ||
            sscanf(line, "reads %15s", version) || sscanf(line, "hang %63s", hangs))
            continue;
        if (sscanf(line, "refuses %63s %d", word, &refusal) == 2) strcpy(refuses, word);
    }
    if (file) fclose(file);
}

static int answer(const char *function) {
    if (!strcmp(function, hangs)) for (;;) pause();
    return strcmp(function, refuses) ? 0 : refusal;
}
#define ANSWER do { int code = answer(__func__); if (code) return code; } while (0)

int cuInit(unsigned flags) { (void)flags; return init_code ? init_code : answer(__func__); }
int cuGetErrorName(int code, const char **name) { (void)code; *name = "CUDA_ERROR_STUB"; return 0; }
int cuDeviceGetCount(int *count) { ANSWER; *count = gpus; return 0; }
int cuDeviceGet(int *device, int index) { ANSWER; *device = index; return 0; }
int cuDeviceGetPCIBusId(char *out, int size, int device) { ANSWER; snprintf(out, size, "0000:%02X:00.0", 0x10 + device); return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { ANSWER; current = device; *context = (void *)(intptr_t)(device + 1); return 0; }
int cuCtxSetCurrent(void *context) { (void)context; ANSWER; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; ANSWER; return 0; }
int cuMemGetInfo_v2(size_t *avail, size_t *total) { ANSWER; *avail = free_mib << 20; *total = 8ull << 30; return 0; }
int cuMemAlloc_v2(uint64_t *out, size_t size) { ANSWER; *out = (uint64_t)(uintptr_t)malloc(size); return 0; }
int cuMemFree_v2(uint64_t memory) { ANSWER; free((void *)(uintptr_t)memory); return 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) { ANSWER; memcpy((void *)(uintptr_t)to, from, size); return 0; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) { ANSWER; memcpy(to, (void *)(uintptr_t)from, size); return 0; }

int cuMemsetD32_v2(uint64_t memory, unsigned value, size_t count) {
    ANSWER;
    for (size_t i = 0; i < count; i++) ((unsigned *)(uintptr_t)memory)[i] = value;
    if (current == forgets) ((unsigned *)(uintptr_t)memory)[count - 1] ^= 1u << 7;
    return 0;
}

int cuModuleLoadData(void **module, const void *image) {
    ANSWER;
    char wanted[32];
    snprintf(wanted, sizeof wanted, ".version %s\n", version);
    if (version[0] && !strstr(image, wanted)) return 218;
    loaded = strstr(image, ".entry multiply") != NULL;
    *module = (void *)1;
    return 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    (void)module;
    ANSWER;
    *function = (void *)1;
    return loaded && !strcmp(name, "multiply") ? 0 : 500;
}
int cuModuleUnload(void *module) { (void)module; ANSWER; return 0; }
int cuCtxSynchronize(void) { ANSWER; return 0; }

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream,
                   void **values, void **extra) {
    (void)f; (void)gy; (void)gz; (void)by; (void)bz; (void)shared; (void)stream; (void)extra;
    ANSWER;
    float *a = (float *)(uintptr_t)*(uint64_t *)values[0], *b = (float *)(uintptr_t)*(uint64_t *)values[1];
    float *c = (float *)(uintptr_t)*(uint64_t *)values[2];
    unsigned n = *(unsigned *)values[3];
    if ((uint64_t)gx * bx < (uint64_t)n * n) return 1; /* some numbers would never be made */
    memset(c, 0, sizeof(float) * n * n);
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < n; k++)
            for (unsigned j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
    if (current == miscalculates) c[n * n - 1] += 1;
    return 0;
}
