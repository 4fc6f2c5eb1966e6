"""The CUDA driver's own library, which is wherever a driver is. Any call may hang: use it in a child."""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nodelib.cuda.kernels import BASE, DIALECTS, HEAD, TENSOR, TENSOR_DIALECTS

LIBRARY = "libcuda.so.1"
THREADS = 256
BLOCKS_PER_PROCESSOR = 8  # so that every multiprocessor has as many threads as it takes
NO_DEVICE, INVALID_PTX, JIT_MISSING, UNSUPPORTED_PTX, PEER_ACCESS_ALREADY = 100, 218, 221, 222, 704
# What to blame for an error, where the driver says it: uncorrectable memory errors, and errors of NVLink.
LAYERS = {214: "memory", 220: "link"}
PROCESSORS, MEMORY_KILOHERTZ, BUS_BITS, MAJOR = 16, 36, 37, 75  # attributes of a device


class Missing(Exception):
    """There is no CUDA driver to ask, or it is not told of any GPU: nothing follows from that."""


class Broken(Exception):
    """A GPU, or the driver, does not do what it should; the message says what, `layer` where."""

    def __init__(self, message: str, layer: str = "CUDA"):
        super().__init__(message)
        self.layer = layer


class Cuda:
    """The driver's library, started. Raises Missing where there is none, Broken where it does not start."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise Missing(f"no CUDA driver library in this container ({error})") from error
        code = self._library.cuInit(0)
        if code == NO_DEVICE:  # the runtime gave this container no GPU, or there is none
            raise Missing("the CUDA driver shows no GPU to this container")
        self.require(code, "cuInit")

    def devices(self) -> Iterator["CudaDevice"]:
        """Yield every GPU that the driver shows."""
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        for index in range(count.value):
            device = ctypes.c_int()
            self.call("cuDeviceGet", ctypes.byref(device), index)
            yield CudaDevice(self, device)

    def call(self, name: str, *arguments: Any) -> None:
        """Call one function. Raises Broken when it answers anything but 0."""
        self.require(self.code(name, *arguments), name)

    def code(self, name: str, *arguments: Any) -> int:
        """Call one function and return what it answers."""
        return int(getattr(self._library, name)(*arguments))

    def require(self, code: int, name: str) -> None:
        """Raise Broken, with the name that the driver has for it, unless a code is 0."""
        if code == JIT_MISSING:
            raise Missing("the driver's compiler (libnvidia-ptxjitcompiler.so.1) is not in this container")
        if code:
            word = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(word))
            text = (word.value or b"unknown").decode("ascii", "replace")
            raise Broken(f"{name} answers {code} ({text})", LAYERS.get(code, "CUDA"))


class CudaDevice:
    """One GPU. `address`: as the driver spells its PCI address, in small letters."""

    def __init__(self, cuda: Cuda, device: ctypes.c_int):
        self._cuda, self.handle = cuda, device
        address, name = ctypes.create_string_buffer(32), ctypes.create_string_buffer(96)
        cuda.call("cuDeviceGetPCIBusId", address, 32, device)
        cuda.call("cuDeviceGetName", name, 96, device)
        self.address = address.value.decode("ascii", "replace").lower()
        self.name = name.value.decode("ascii", "replace")

    def attribute(self, number: int) -> int:
        """Return what the driver tells of the GPU by this number, 0 for nothing."""
        value = ctypes.c_int()
        code = self._cuda.code("cuDeviceGetAttribute", ctypes.byref(value), number, self.handle)
        return 0 if code else value.value

    def reaches(self, other: "CudaDevice") -> bool:
        """Whether this GPU can read and write the memory of the other one."""
        can = ctypes.c_int()
        self._cuda.call("cuDeviceCanAccessPeer", ctypes.byref(can), self.handle, other.handle)
        return bool(can.value)

    def open(self) -> "Context":
        """Return a place to work in on this GPU."""
        return Context(self._cuda, self)


class Context:
    """Memory and programs on one GPU. Every method raises Broken where the driver refuses."""

    def __init__(self, cuda: Cuda, device: CudaDevice):
        self._cuda, self.device = cuda, device
        self._context = ctypes.c_void_p()
        self._modules: dict[str, ctypes.c_void_p] = {}
        cuda.call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device.handle)
        self.use()
        self.blocks = max(1, device.attribute(PROCESSORS)) * BLOCKS_PER_PROCESSOR
        self._events = [self._event(), self._event()]

    def use(self) -> None:
        """Let the calls that follow be about this GPU."""
        self._cuda.call("cuCtxSetCurrent", self._context)

    def close(self) -> None:
        """Give everything back."""
        self._cuda.call("cuDevicePrimaryCtxRelease_v2", self.device.handle)

    def free_bytes(self) -> int:
        """Return how much memory nobody has."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._cuda.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def allocate(self, size: int) -> ctypes.c_uint64:
        """Return memory of the GPU."""
        memory = ctypes.c_uint64()
        self._cuda.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
        return memory

    def free(self, *memories: ctypes.c_uint64) -> None:
        """Give memory back."""
        for memory in memories:
            self._cuda.call("cuMemFree_v2", memory)

    def pinned(self, size: int) -> ctypes.c_void_p:
        """Return memory of the host that the GPU reads and writes by itself."""
        memory = ctypes.c_void_p()
        self._cuda.call("cuMemHostAlloc", ctypes.byref(memory), ctypes.c_size_t(size), 0)
        return memory

    def unpin(self, memory: ctypes.c_void_p) -> None:
        """Give such memory back."""
        self._cuda.call("cuMemFreeHost", memory)

    def write(self, memory: ctypes.c_uint64, data: "bytes | ctypes.c_void_p", size: int) -> None:
        """Copy from the host to the GPU."""
        self._cuda.call("cuMemcpyHtoD_v2", memory, data, ctypes.c_size_t(size))

    def read(self, memory: ctypes.c_uint64, size: int) -> bytes:
        """Copy from the GPU to the host."""
        data = ctypes.create_string_buffer(size)
        self.read_into(data, memory, size)
        return data.raw

    def read_into(self, data: Any, memory: ctypes.c_uint64, size: int) -> None:
        """Copy from the GPU to this memory of the host."""
        self._cuda.call("cuMemcpyDtoH_v2", data, memory, ctypes.c_size_t(size))

    def upload(self, data: bytes) -> ctypes.c_uint64:
        """Return memory of the GPU that holds `data`."""
        memory = self.allocate(len(data))
        self.write(memory, data, len(data))
        return memory

    def join(self, other: "Context") -> None:
        """Let this GPU read and write the memory of the other one."""
        code = self._cuda.code("cuCtxEnablePeerAccess", other._context, 0)
        self._cuda.require(0 if code == PEER_ACCESS_ALREADY else code, "cuCtxEnablePeerAccess")

    def send(self, target: ctypes.c_uint64, other: "Context", source: ctypes.c_uint64, size: int) -> None:
        """Begin to copy memory of this GPU to memory of the other one."""
        amount = ctypes.c_size_t(size)
        self._cuda.call("cuMemcpyPeerAsync", target, other._context, source, self._context, amount, None)

    def launch(self, name: str, blocks: int, *values: Any) -> None:
        """Begin to run one program of `kernels` on so many blocks of threads."""
        kernel = ctypes.c_void_p()
        self._cuda.call("cuModuleGetFunction", ctypes.byref(kernel), self._module(name), name.encode())
        pointers = (ctypes.c_void_p * len(values))(
            *(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values)
        )
        self._cuda.call("cuLaunchKernel", kernel, blocks, 1, 1, THREADS, 1, 1, 0, None, pointers, None)

    def wait(self) -> None:
        """Wait until all that was begun is done."""
        self._cuda.call("cuCtxSynchronize")

    def seconds(self, work: Callable[[], None]) -> float:
        """Do some work and return how long it took by the GPU's own clock."""
        begin, end = self._events
        self._cuda.call("cuEventRecord", begin, None)
        work()
        self._cuda.call("cuEventRecord", end, None)
        self.wait()
        milliseconds = ctypes.c_float()
        self._cuda.call("cuEventElapsedTime", ctypes.byref(milliseconds), begin, end)
        return max(milliseconds.value, 1e-6) / 1000

    def _event(self) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        self._cuda.call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def _module(self, name: str) -> ctypes.c_void_p:
        text, dialects = (TENSOR, TENSOR_DIALECTS) if name == "tensor" else (BASE, DIALECTS)
        if text not in self._modules:
            self._modules[text] = self._load(text, dialects)
        return self._modules[text]

    def _load(self, text: str, dialects: Sequence[tuple[str, str]]) -> ctypes.c_void_p:
        """The programs in the first dialect that this driver reads."""
        module = ctypes.c_void_p()
        for version, target in dialects:
            image = (HEAD.format(version=version, target=target) + text).encode()
            code = self._cuda.code("cuModuleLoadData", ctypes.byref(module), image)
            if code not in (INVALID_PTX, UNSUPPORTED_PTX):
                break
        self._cuda.require(code, "cuModuleLoadData")
        return module
