"""One GPU put to work through the CUDA driver's own library, which is wherever a driver is: no toolkit is needed.

Memory is filled with patterns and read back; two matrices of small whole numbers are multiplied, so that the product is
exact and every bit of it can be compared. Any call may hang on a sick GPU: run it in a child.
"""

import ctypes
from array import array
from collections.abc import Iterator
from functools import cache
from typing import Any

LIBRARY = "libcuda.so.1"
BLOCK = 32 << 20  # bytes compared at a time
PATTERNS = (0xA5A5A5A5, 0x5A5A5A5A)
SIZE = 512  # rows of a matrix
THREADS = 256
# One thread for each number of the product. The kernel is the same for every GPU: the driver translates it.
KERNEL = """
.version {version}
.target {target}
.address_size 64
.visible .entry multiply(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 pn)
{{
    .reg .pred %p<3>;
    .reg .b32 %r<10>;
    .reg .f32 %f<4>;
    .reg .b64 %d<12>;
    ld.param.u64 %d1, [pa];
    ld.param.u64 %d2, [pb];
    ld.param.u64 %d3, [pc];
    ld.param.u32 %r1, [pn];
    cvta.to.global.u64 %d1, %d1;
    cvta.to.global.u64 %d2, %d2;
    cvta.to.global.u64 %d3, %d3;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    mul.lo.u32 %r6, %r1, %r1;
    setp.ge.u32 %p1, %r5, %r6;
    @%p1 bra DONE;
    div.u32 %r7, %r5, %r1;
    rem.u32 %r8, %r5, %r1;
    mul.wide.u32 %d4, %r1, 4;
    cvt.u64.u32 %d5, %r7;
    mul.lo.u64 %d6, %d5, %d4;
    add.u64 %d7, %d1, %d6;
    mul.wide.u32 %d8, %r8, 4;
    add.u64 %d9, %d2, %d8;
    mov.f32 %f1, 0f00000000;
    mov.u32 %r9, 0;
NEXT:
    ld.global.f32 %f2, [%d7];
    ld.global.f32 %f3, [%d9];
    fma.rn.f32 %f1, %f2, %f3, %f1;
    add.u64 %d7, %d7, 4;
    add.u64 %d9, %d9, %d4;
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p2, %r9, %r1;
    @%p2 bra NEXT;
    mul.wide.u32 %d10, %r5, 4;
    add.u64 %d11, %d3, %d10;
    st.global.f32 [%d11], %f1;
DONE:
    ret;
}}
"""
# What old drivers read, and what those to come may ask for instead.
DIALECTS = (("6.0", "sm_50"), ("7.8", "sm_75"))
INVALID_PTX, UNSUPPORTED_PTX = 218, 222


class Missing(Exception):
    """There is no CUDA driver to ask, or it is not told of any GPU: nothing follows from that."""


class Broken(Exception):
    """A GPU, or the driver, does not do what it should; the message says what."""


class Cuda:
    """The driver's library, started. Raises Missing where there is none, Broken where it does not start."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise Missing(f"no CUDA driver library in this container ({error})") from error
        code = self._library.cuInit(0)
        if code == 100:  # CUDA_ERROR_NO_DEVICE: the runtime gave this container no GPU, or there is none
            raise Missing("the CUDA driver shows no GPU to this container")
        self.require(code, "cuInit")

    def gpus(self) -> Iterator["Gpu"]:
        """Yield every GPU that the driver shows."""
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        for index in range(count.value):
            device, address = ctypes.c_int(), ctypes.create_string_buffer(32)
            self.call("cuDeviceGet", ctypes.byref(device), index)
            self.call("cuDeviceGetPCIBusId", address, 32, device)
            yield Gpu(self, device, address.value.decode("ascii", "replace").lower())

    def call(self, name: str, *arguments: Any) -> None:
        """Call one function. Raises Broken when it answers anything but 0."""
        self.require(self.code(name, *arguments), name)

    def code(self, name: str, *arguments: Any) -> int:
        """Call one function and return what it answers."""
        return int(getattr(self._library, name)(*arguments))

    def require(self, code: int, name: str) -> None:
        """Raise Broken, with the name that the driver has for it, unless a code is 0."""
        if code:
            word = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(word))
            raise Broken(f"{name} answers {code} ({(word.value or b'unknown').decode('ascii', 'replace')})")


class Gpu:
    """One GPU. `address`: as the driver spells its PCI address, in small letters."""

    def __init__(self, cuda: Cuda, device: ctypes.c_int, address: str):
        self._cuda, self._device, self.address = cuda, device, address

    def probe(self, megabytes: int) -> int:
        """Write, read and multiply; return how many MiB were compared. Raises Broken with what is wrong."""
        context = ctypes.c_void_p()
        self._cuda.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self._cuda.call("cuCtxSetCurrent", context)
        compared = self._memory(megabytes << 20)
        self._multiply()
        self._cuda.call("cuDevicePrimaryCtxRelease_v2", self._device)
        return compared >> 20

    def _memory(self, wanted: int) -> int:
        """Fill as much memory as is wanted and free with each pattern and compare it; return the bytes."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._cuda.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        size = min(wanted, free.value // 10 * 9) // BLOCK * BLOCK
        if not size:
            raise Broken(f"only {free.value >> 20} MiB of its memory are free")
        memory = self._allocate(size)
        for pattern in PATTERNS:
            self._cuda.call("cuMemsetD32_v2", memory, ctypes.c_uint(pattern), ctypes.c_size_t(size // 4))
            self._compare(memory, size, pattern)
        self._cuda.call("cuMemFree_v2", memory)
        return size

    def _compare(self, memory: ctypes.c_uint64, size: int, pattern: int) -> None:
        expected = pattern.to_bytes(4, "little") * (BLOCK // 4)
        for offset in range(0, size, BLOCK):
            if self._read(ctypes.c_uint64(memory.value + offset), BLOCK) != expected:
                raise Broken(f"its memory does not hold what was written ({pattern:#x})")

    def _multiply(self) -> None:
        """Multiply two matrices and compare the whole product."""
        left, right, expected = _matrices()
        product = self._allocate(4 * SIZE * SIZE)
        inputs = [self._upload(left), self._upload(right)]
        self._launch(*inputs, product)
        if self._read(product, 4 * SIZE * SIZE) != expected.tobytes():
            raise Broken("it multiplies wrongly")
        for memory in (*inputs, product):
            self._cuda.call("cuMemFree_v2", memory)

    def _launch(self, *memories: ctypes.c_uint64) -> None:
        module, kernel = self._module(), ctypes.c_void_p()
        self._cuda.call("cuModuleGetFunction", ctypes.byref(kernel), module, b"multiply")
        values = [*memories, ctypes.c_uint(SIZE)]
        pointers = (ctypes.c_void_p * len(values))(
            *(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values)
        )
        blocks = (SIZE * SIZE + THREADS - 1) // THREADS
        self._cuda.call("cuLaunchKernel", kernel, blocks, 1, 1, THREADS, 1, 1, 0, None, pointers, None)
        self._cuda.call("cuCtxSynchronize")
        self._cuda.call("cuModuleUnload", module)

    def _module(self) -> ctypes.c_void_p:
        """The kernel in the first dialect that this driver reads."""
        module = ctypes.c_void_p()
        for version, target in DIALECTS:
            text = KERNEL.format(version=version, target=target).encode()
            code = self._cuda.code("cuModuleLoadData", ctypes.byref(module), text)
            if code not in (INVALID_PTX, UNSUPPORTED_PTX):
                break
        self._cuda.require(code, "cuModuleLoadData")
        return module

    def _allocate(self, size: int) -> ctypes.c_uint64:
        memory = ctypes.c_uint64()
        self._cuda.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
        return memory

    def _upload(self, numbers: "array[float]") -> ctypes.c_uint64:
        memory, data = self._allocate(4 * len(numbers)), numbers.tobytes()
        self._cuda.call("cuMemcpyHtoD_v2", memory, data, ctypes.c_size_t(len(data)))
        return memory

    def _read(self, memory: ctypes.c_uint64, size: int) -> bytes:
        data = ctypes.create_string_buffer(size)
        self._cuda.call("cuMemcpyDtoH_v2", data, memory, ctypes.c_size_t(size))
        return data.raw


@cache
def _matrices() -> tuple["array[float]", "array[float]", "array[float]"]:
    """Two matrices and their product.

    The second is a column times a row, so that the product takes as many steps as it has numbers; all sums are whole
    numbers below 2**24, which a float holds exactly, in whatever order they are added up.
    """
    numbers = range(SIZE)
    rows = [[(7 * row + 3 * column) % 251 for column in numbers] for row in numbers]
    down, across = [number % 5 + 1 for number in numbers], [number % 4 + 1 for number in numbers]
    sums = [sum(map(int.__mul__, row, down)) for row in rows]
    left = array("f", (number for row in rows for number in row))
    right = array("f", (factor * other for factor in down for other in across))
    return left, right, array("f", (total * other for total in sums for other in across))
