/* A libcuda.so.1 whose GPUs keep their memory here and do what the kernels that they are given would do.
 *
 * $CUDA_STUB names a text file, read once; one order a line:
 *   init CODE              cuInit answers CODE (0 fine, 100 no device, 999)
 *   count N                how many GPUs there are
 *   name TEXT              what all are called
 *   major N                their compute capability
 *   free MIB               free memory of each (4096)
 *   forgets I              a bit of what is written to GPU I is lost
 *   miscalculates I        one number of a product of GPU I is wrong
 *   wavers I               one number of a product of GPU I is wrong, but not of the first one
 *   tensor-wrong I         one sum of the tensor cores of GPU I is wrong
 *   garbles I              a bit of what goes from the host to GPU I is lost
 *   drops I                a bit of what GPU I sends to another is lost
 *   alone I                no other GPU can reach GPU I
 *   speed memory|pcie|peer I GBPS   of GPU I (else 2500, 50 and 380)
 *   refuses FUNCTION CODE  every call of FUNCTION answers CODE
 *   hang FUNCTION          the call does not return
 *   reads VERSION          only kernels with this .version are read, others are invalid (218)
 *
 * $CUDA_VISIBLE_DEVICES: UUIDs whose last twelve digits are the index of a GPU; those of no GPU end the list. Time is
 * made by what is done: bytes by speed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 16, MEMORY, PCIE, PEER };
static int init_code, gpus = 1, major = 9, forgets = -1, miscalculates = -1, wavers = -1, tensor_wrong = -1, garbles = -1, drops = -1;
static int alone = -1, refusal, current, visible[MOST], seen, products;
static size_t free_mib = 4096;
static double speeds[PEER + 1][MOST], now_ms;
static char refuses[64], hangs[64], version[16], model[96] = "NVIDIA H100 80GB HBM3";

static void read_order(const char *line) {
    static const struct { const char *word; int *value; } NUMBERS[] = {
        {"init", &init_code}, {"count", &gpus}, {"major", &major}, {"forgets", &forgets}, {"miscalculates", &miscalculates},
        {"wavers", &wavers}, {"tensor-wrong", &tensor_wrong}, {"garbles", &garbles}, {"drops", &drops}, {"alone", &alone},
    };
    char word[64], what[16];
    int number;
    double gbps;
    if (sscanf(line, "speed %15s %d %lf", what, &number, &gbps) == 3) speeds[*what == 'm' ? MEMORY : what[1] == 'c' ? PCIE : PEER][number] = gbps;
    else if (sscanf(line, "name %95[^\n]", model) || sscanf(line, "free %zu", &free_mib) || sscanf(line, "reads %15s", version)) return;
    else if (sscanf(line, "hang %63s", hangs) || sscanf(line, "refuses %63s %d", refuses, &refusal)) return;
    else if (sscanf(line, "%63s %d", word, &number) == 2)
        for (unsigned i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++)
            if (!strcmp(word, NUMBERS[i].word)) *NUMBERS[i].value = number;
}

__attribute__((constructor)) static void read_orders(void) {
    char line[256], *uuids = getenv("CUDA_VISIBLE_DEVICES");
    FILE *file = getenv("CUDA_STUB") ? fopen(getenv("CUDA_STUB"), "r") : NULL;
    for (int i = 0; i < MOST; i++) speeds[MEMORY][i] = 2500, speeds[PCIE][i] = 50, speeds[PEER][i] = 380;
    while (file && fgets(line, sizeof line, file)) read_order(line);
    if (file) fclose(file);
    if (!uuids) for (seen = 0; seen < gpus; seen++) visible[seen] = seen;
    for (uuids = uuids ? strdup(uuids) : NULL; uuids && *uuids;) {
        size_t length = strcspn(uuids, ",");
        int index = length < 12 ? gpus : atoi(strndup(uuids + length - 12, 12));
        if (index >= gpus) break;
        visible[seen++] = index;
        uuids += length + (uuids[length] == ',');
    }
}

static int answer(const char *function) {
    if (!strcmp(function, hangs)) for (;;) pause();
    return strcmp(function, refuses) ? 0 : refusal;
}
#define ANSWER do { int code = answer(__func__); if (code) return code; } while (0)
static void take(int kind, int gpu, size_t bytes) { now_ms += bytes / speeds[kind][gpu] / 1e6; }

int cuInit(unsigned flags) {
    (void)flags;
    int code = init_code ? init_code : answer("cuInit");
    return code ? code : seen ? 0 : 100;
}
int cuGetErrorName(int code, const char **name) { (void)code; *name = "CUDA_ERROR_STUB"; return 0; }
int cuDeviceGetCount(int *count) { ANSWER; *count = seen; return 0; }
int cuDeviceGet(int *device, int index) { ANSWER; *device = visible[index]; return index < seen ? 0 : 101; }
int cuDeviceGetPCIBusId(char *out, int size, int device) { ANSWER; snprintf(out, size, "0000:%02X:00.0", 0x10 + device); return 0; }
int cuDeviceGetName(char *out, int size, int device) { (void)device; ANSWER; snprintf(out, size, "%s", model); return 0; }
int cuDeviceGetAttribute(int *out, int attribute, int device) {
    (void)device;
    ANSWER;
    *out = attribute == 16 ? 4 : attribute == 36 ? 2619000 : attribute == 37 ? 5120 : attribute == 75 ? major : -1;
    return *out < 0;
}
int cuDeviceCanAccessPeer(int *can, int one, int other) { ANSWER; *can = one != alone && other != alone; return one == other; }
int cuDevicePrimaryCtxRetain(void **context, int device) { ANSWER; *context = (void *)(intptr_t)(device + 1); return 0; }
int cuCtxSetCurrent(void *context) { ANSWER; current = (int)(intptr_t)context - 1; return 0; }
int cuCtxEnablePeerAccess(void *other, unsigned flags) {
    static int joined[MOST][MOST];
    ANSWER;
    int peer = (int)(intptr_t)other - 1;
    if (flags || peer == current) return 1;
    return joined[current][peer]++ ? 704 : 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; ANSWER; return 0; }
int cuMemGetInfo_v2(size_t *avail, size_t *total) { ANSWER; *avail = free_mib << 20; *total = 8ull << 30; return 0; }
int cuMemAlloc_v2(uint64_t *out, size_t size) { ANSWER; *out = (uint64_t)(uintptr_t)malloc(size); return 0; }
int cuMemFree_v2(uint64_t memory) { ANSWER; free((void *)(uintptr_t)memory); return 0; }
int cuMemHostAlloc(void **out, size_t size, unsigned flags) { ANSWER; *out = malloc(size); return flags; }
int cuMemFreeHost(void *memory) { ANSWER; free(memory); return 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) {
    ANSWER;
    memcpy((void *)(uintptr_t)to, from, size);
    if (current == garbles && size >= 1 << 20) ((char *)(uintptr_t)to)[size / 2] ^= 4;
    take(PCIE, current, size);
    return 0;
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) { ANSWER; memcpy(to, (void *)(uintptr_t)from, size); take(PCIE, current, size); return 0; }
int cuMemcpyPeerAsync(uint64_t to, void *target, uint64_t from, void *source, size_t size, void *stream) {
    ANSWER;
    if (stream || target == source || (intptr_t)source - 1 != current) return 1;
    memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, size);
    if (current == drops) ((char *)(uintptr_t)to)[size - 1] ^= 1;
    take(PEER, current, size);
    return 0;
}

int cuEventCreate(void **event, unsigned flags) { ANSWER; *event = calloc(1, sizeof(double)); return flags; }
int cuEventRecord(void *event, void *stream) { ANSWER; *(double *)event = now_ms; return stream != NULL; }
int cuEventElapsedTime(float *out, void *begin, void *end) { ANSWER; *out = (float)(*(double *)end - *(double *)begin); return 0; }

/* A module is the text that it was made of, a function its name there. */
int cuModuleLoadData(void **module, const void *image) {
    ANSWER;
    char wanted[32];
    snprintf(wanted, sizeof wanted, ".version %s\n", version);
    if (version[0] && !strstr(image, wanted)) return 218;
    *module = strdup(image);
    return 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    char entry[64];
    ANSWER;
    snprintf(entry, sizeof entry, ".entry %s(", name);
    *function = strdup(name);
    return strstr(module, entry) ? 0 : 500;
}
int cuCtxSynchronize(void) { ANSWER; return 0; }

static void multiply(const float *a, const float *b, float *c, unsigned n) {
    static float *kept;
    if (!kept) { /* it is asked for the same product again and again */
        kept = calloc((size_t)n * n, sizeof(float));
        for (unsigned i = 0; i < n; i++)
            for (unsigned k = 0; k < n; k++)
                for (unsigned j = 0; j < n; j++) kept[i * n + j] += a[i * n + k] * b[k * n + j];
    }
    memcpy(c, kept, sizeof(float) * n * n);
    if (current == miscalculates || (current == wavers && ++products == 3)) c[n * n - 1] += 1;
}

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream,
                   void **values, void **extra) {
    ANSWER;
    if (gy != 1 || gz != 1 || by != 1 || bz != 1 || shared || stream || extra || !gx || !bx) return 1;
#define VALUE(i) (*(uint64_t *)values[i])
#define WORDS(i) ((uint64_t *)(uintptr_t)VALUE(i))
    if (!strcmp(f, "fill")) {
        for (uint64_t i = 0; i < 2 * VALUE(1); i++) WORDS(0)[i] = i ^ VALUE(2);
        if (current == forgets) WORDS(0)[2 * VALUE(1) - 1] ^= 1u << 7;
        take(MEMORY, current, 16 * VALUE(1));
    } else if (!strcmp(f, "check")) {
        for (uint64_t i = VALUE(1); i-- > 0;) {
            uint64_t bits = (WORDS(0)[2 * i] ^ (2 * i) ^ VALUE(2)) | (WORDS(0)[2 * i + 1] ^ (2 * i + 1) ^ VALUE(2));
            if (bits) WORDS(3)[0]++, WORDS(3)[1] |= bits, WORDS(3)[2] = i < WORDS(3)[2] ? i : WORDS(3)[2];
        }
        take(MEMORY, current, 16 * VALUE(1));
    } else if (!strcmp(f, "differ")) {
        for (uint64_t i = 0; i < VALUE(2); i++) WORDS(3)[0] += ((uint32_t *)WORDS(0))[i] != ((uint32_t *)WORDS(1))[i];
    } else if (!strcmp(f, "tensor")) {
        if (major < 8) return 209;
        WORDS(0)[0] += current == tensor_wrong;
        now_ms += 3;
    } else {
        unsigned n = *(unsigned *)values[3];
        if ((uint64_t)gx * bx < (uint64_t)n * n) return 1; /* some numbers would never be made */
        multiply((float *)WORDS(0), (float *)WORDS(1), (float *)WORDS(2), n);
    }
    return 0;
}
