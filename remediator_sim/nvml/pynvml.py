"""A stand-in for pynvml (nvidia-ml-py) on simulated nodes: no driver, no library, only a script.

Put this folder first on the module path, or name it to a detector as `--pynvml`. It knows what detectors and
collect_diagnostics ask and does what the file named by $NVML_STUB says, a millisecond ago or now; the orders are those
of tests/native/nvml_stub.c. What it does not know raises NVMLError_FunctionNotFound, as with a driver that is too old.
Names, numbers and texts are those of pynvml 13; a contract test holds both against each other.
"""

import ctypes
import os
import time
from collections.abc import Callable
from typing import Any, NoReturn

NVML_SUCCESS = 0
NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 0, 1
NVML_VOLATILE_ECC, NVML_AGGREGATE_ECC = 0, 1
NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS, NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR = 0, 1
NVML_FI_DEV_GET_GPU_RECOVERY_ACTION = 230
NVML_VALUE_TYPE_UNSIGNED_INT = 1
NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2
NVML_NVLINK_MAX_LINKS, NVML_NVLINK_DEVICE_TYPE_UNKNOWN = 36, 255
nvmlMemory_v2 = 0x02000028

# Fields that have a value where no order names them: type (1 unsigned int, 3 unsigned long long, 5 int) and value.
FIELDS = {
    **dict.fromkeys((38, 45, 52, 59, 161, 162, 163, 214, 270, 271), (3, "0")),
    194: (5, "-2"),
    NVML_FI_DEV_GET_GPU_RECOVERY_ACTION: (NVML_VALUE_TYPE_UNSIGNED_INT, "0"),
}

# NVML_ERROR_<name> by code, and what pynvml says of it; "" where it asks the library.
ERRORS = {
    1: ("UNINITIALIZED", "Uninitialized"),
    2: ("INVALID_ARGUMENT", "Invalid Argument"),
    3: ("NOT_SUPPORTED", "Not Supported"),
    4: ("NO_PERMISSION", "Insufficient Permissions"),
    5: ("ALREADY_INITIALIZED", "Already Initialized"),
    6: ("NOT_FOUND", "Not Found"),
    7: ("INSUFFICIENT_SIZE", "Insufficient Size"),
    8: ("INSUFFICIENT_POWER", "Insufficient External Power"),
    9: ("DRIVER_NOT_LOADED", "Driver Not Loaded"),
    10: ("TIMEOUT", "Timeout"),
    11: ("IRQ_ISSUE", "Interrupt Request Issue"),
    12: ("LIBRARY_NOT_FOUND", "NVML Shared Library Not Found"),
    13: ("FUNCTION_NOT_FOUND", "Function Not Found"),
    14: ("CORRUPTED_INFOROM", "Corrupted infoROM"),
    15: ("GPU_IS_LOST", "GPU is lost"),
    16: ("RESET_REQUIRED", "GPU requires restart"),
    17: ("OPERATING_SYSTEM", "The operating system has blocked the request."),
    18: ("LIB_RM_VERSION_MISMATCH", "RM has detected an NVML/RM version mismatch."),
    19: ("IN_USE", ""),
    20: ("MEMORY", "Insufficient Memory"),
    21: ("NO_DATA", ""),
    22: ("VGPU_ECC_NOT_SUPPORTED", ""),
    23: ("INSUFFICIENT_RESOURCES", ""),
    24: ("FREQ_NOT_SUPPORTED", ""),
    25: ("ARGUMENT_VERSION_MISMATCH", ""),
    26: ("DEPRECATED", ""),
    27: ("NOT_READY", ""),
    28: ("GPU_NOT_FOUND", ""),
    29: ("INVALID_STATE", ""),
    30: ("RESET_TYPE_NOT_SUPPORTED", ""),
    999: ("UNKNOWN", "Unknown Error"),
}

_started = False


class NVMLError(Exception):
    """What NVML answers in place of a value. `value`: its code; NVMLError(code) is of the class of that code."""

    value = 0

    def __new__(cls, value: int = 0) -> "NVMLError":
        error: NVMLError = Exception.__new__(CLASSES.get(value, cls) if cls is NVMLError else cls)
        if cls is NVMLError:
            error.value = value
        return error

    def __str__(self) -> str:
        return ERRORS.get(self.value, ("", ""))[1] or nvmlErrorString(self.value)


def _class_of(name: str, code: int) -> type[NVMLError]:
    words = "".join(word.capitalize() for word in name.split("_"))
    return type(f"NVMLError_{words}", (NVMLError,), {"value": code, "__module__": __name__})


CLASSES = {code: _class_of(name, code) for code, (name, _) in ERRORS.items()}
globals().update({f"NVML_ERROR_{name}": code for code, (name, _) in ERRORS.items()})
globals().update({one.__name__: one for one in CLASSES.values()})


class _Record:
    """A structure that NVML fills."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class c_nvmlEccSramErrorStatus_v1_t(ctypes.Structure):
    """Counters of SRAM errors; callers hand in a reference to it."""

    _fields_ = [
        ("version", ctypes.c_uint),
        ("aggregateUncParity", ctypes.c_ulonglong),
        ("aggregateUncSecDed", ctypes.c_ulonglong),
        ("aggregateCor", ctypes.c_ulonglong),
        ("volatileUncParity", ctypes.c_ulonglong),
        ("volatileUncSecDed", ctypes.c_ulonglong),
        ("volatileCor", ctypes.c_ulonglong),
        ("aggregateUncBucketL2", ctypes.c_ulonglong),
        ("aggregateUncBucketSm", ctypes.c_ulonglong),
        ("aggregateUncBucketPcie", ctypes.c_ulonglong),
        ("aggregateUncBucketMcu", ctypes.c_ulonglong),
        ("aggregateUncBucketOther", ctypes.c_ulonglong),
        ("bThresholdExceeded", ctypes.c_uint),
    ]

    def __init__(self) -> None:
        super().__init__(version=0x1000068)


class c_nvmlGpuFabricInfo_t(ctypes.Structure):
    """How far a GPU is registered with its fabric; callers hand in a reference to it."""

    _fields_ = [
        ("clusterUuid", ctypes.c_uint8 * 16),
        ("status", ctypes.c_uint),
        ("cliqueId", ctypes.c_uint32),
        ("state", ctypes.c_uint),
    ]


class c_nvmlGpuFabricInfo_v2_t(ctypes.Structure):
    """The same with its health."""

    _fields_ = [("version", ctypes.c_uint), *c_nvmlGpuFabricInfo_t._fields_, ("healthMask", ctypes.c_uint32)]

    def __init__(self) -> None:
        super().__init__(version=0x2000024)


class c_nvmlValue_t(ctypes.Union):
    """The value of a field."""

    _fields_ = [
        ("dVal", ctypes.c_double),
        ("uiVal", ctypes.c_uint),
        ("ulVal", ctypes.c_ulong),
        ("ullVal", ctypes.c_ulonglong),
        ("sllVal", ctypes.c_longlong),
        ("siVal", ctypes.c_int),
        ("usVal", ctypes.c_ushort),
    ]


class _Script:
    """The orders of one text, by what they are about: one question, one GPU, or all ("")."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._orders: dict[str, list[tuple[int, list[str]]]] = {}
        for place, line in enumerate(text.splitlines()):
            words = line.split()
            self._orders.setdefault(_subject(words), []).append((place, words))

    def about(self, what: str, index: int) -> list[list[str]]:
        """The orders that may concern one question to one GPU, in the order of the text."""
        subjects = ("", what, f"gpu {index} error", f"gpu {index} {what}")
        orders = [order for subject in subjects for order in self._orders.get(subject, ())]
        return [words for _, words in sorted(orders)]


def _subject(words: list[str]) -> str:
    match words:
        case ["gpu", number, name, *_]:
            return f"gpu {number} {name}"
        case ["hang", name, *_]:
            return name
        case ["driver" | "init" as name, *_]:
            return name
    return ""


SETTLED = 0.1  # seconds after which a file's time of change tells one content from the next
_parsed = _Script("")  # the text that was read last: a detector asks a thousand questions of one text
_file: tuple[int, ...] | None = None  # the file that it was read from, if that has not changed for a while
LOOK = 0.001  # seconds between two looks at such a file
_looked = float("-inf")  # when that was looked at


def _script() -> _Script | None:
    """The script as it is now; None where there is none, as with a driver that is not loaded."""
    global _parsed, _file, _looked
    if time.monotonic() - _looked < LOOK:
        return _parsed
    try:
        seen = os.stat(os.environ["NVML_STUB"])  # noqa: PTH116  (pathlib takes longer to import than all else)
        file = (seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns)
        if file == _file:
            _looked = time.monotonic()
            return _parsed
        with open(os.environ["NVML_STUB"]) as script:  # noqa: PTH123
            text = script.read()
    except (KeyError, OSError):
        return None
    _file = file if time.time() - seen.st_mtime > SETTLED else None
    if text != _parsed.text:
        _parsed = _Script(text)
    return _parsed


class _Answer:
    """What the script says to one question: code, count of GPUs, text."""

    def __init__(self, what: str, index: int, otherwise: str = "") -> None:
        self.code, self.count, self.text, self.hangs = 0, 0, otherwise, False
        script = _script()
        if script is None:
            self.code = 9
            return
        for order in script.about(what, index):
            self._obey(order, what, index)
        while self.hangs:
            time.sleep(1)
        if self.text.startswith("error:"):
            self.code = self.code or int(self.text[6:])

    def _obey(self, words: list[str], what: str, index: int) -> None:
        match words:
            case ["count", number, *_]:
                self.count = int(number)
            case ["log", path, *_]:
                with open(path, "a") as log:  # noqa: PTH123
                    log.write(f"{what} {index}\n")
            case ["driver", text, *_] if what == "driver":
                self.text = text
            case ["init", code, *_] if what == "init":
                self.code = int(code)
            case ["hang", name, *rest] if name == what:
                self.hangs |= not rest or rest[0] == str(index)
            case ["gpu", number, "error", code, *_] if number == str(index):
                self.code = int(code)
            case ["gpu", number, name, text, *_] if (number, name) == (str(index), what):
                self.text = text

    def numbers(self, most: int) -> list[int]:
        """The numbers of the text, 0 for those left out. Raises NVMLError."""
        self.check()
        numbers = [] if self.text.startswith("error:") else [int(number) for number in self.text.split(",")]
        return (numbers + [0] * most)[:most]

    def check(self) -> "_Answer":
        if self.code:
            raise NVMLError(self.code)
        return self


def _ask(what: str, index: int = -1, otherwise: str = "") -> _Answer:
    if not _started:
        raise NVMLError(1)
    return _Answer(what, index, otherwise)


def nvmlInitWithFlags(flags: int) -> None:
    """Start. `flags` are not looked at."""
    global _started
    _started = True  # the library is loaded, whatever it answers
    _ask("init").check()


def nvmlInit() -> None:
    """Start."""
    nvmlInitWithFlags(0)


def nvmlShutdown() -> None:
    """End; as with the real one the library stays loaded."""
    if not _started:
        raise NVMLError(1)


def nvmlErrorString(code: int) -> str:
    """Return what the scripted library says of a code that pynvml does not know."""
    return "Unknown Error"


def nvmlSystemGetDriverVersion() -> str:
    """Return the driver's version."""
    return _ask("driver", otherwise="570.86.15").check().text


def nvmlDeviceGetCount() -> int:
    """Return how many GPUs there are."""
    return _ask("count").check().count


def nvmlDeviceGetHandleByIndex(index: int) -> int:
    """Return a handle: here the index itself."""
    handle = _ask("handle", index)
    if not 0 <= index < handle.count:
        raise NVMLError(2)
    handle.check()
    return index


def nvmlDeviceGetUUID(handle: int) -> str:
    """Return the UUID."""
    return _ask("uuid", handle, f"GPU-00000000-0000-0000-0000-{handle:012d}").check().text


def nvmlDeviceGetSerial(handle: int) -> str:
    """Return the serial number of the board."""
    return _ask("serial", handle, f"15635210204{handle:02d}").check().text


def nvmlDeviceGetBoardPartNumber(handle: int) -> str:
    """Return the part number of the board."""
    return _ask("part", handle, f"900-21010-00{handle:02d}-000").check().text


def nvmlDeviceGetInforomImageVersion(handle: int) -> str:
    """Return the version of the InfoROM's image."""
    return _ask("inforom", handle, f"1010.0200.00.{handle:02d}").check().text


def nvmlDeviceGetPciInfo(handle: int) -> _Record:
    """Return a record with busId."""
    return _Record(busId=_ask("pci", handle, f"00000000:1{handle}:00.0").check().text)


def nvmlDeviceGetEccMode(handle: int) -> list[int]:
    """Return whether ECC is on now, and after the next reset."""
    return _ask("ecc-mode", handle, "1,1").numbers(2)


def nvmlDeviceGetTotalEccErrors(handle: int, errorType: int, counterType: int) -> int:
    """Return how many errors, corrected or uncorrected, since the driver loaded or ever."""
    if errorType not in (0, 1) or counterType not in (0, 1):
        raise NVMLError(2)
    what = ("corrected", "uncorrected")[errorType] + ("", "-ever")[counterType]
    return _ask(what, handle, "0").numbers(1)[0]


def nvmlDeviceGetRemappedRows(handle: int) -> tuple[int, ...]:
    """Return rows remapped after corrected and after uncorrected errors, pending 0|1, failed 0|1."""
    return tuple(_ask("remapped", handle, "0").numbers(4))


def nvmlDeviceGetRowRemapperHistogram(handle: int) -> _Record:
    """Return how many banks have how many spare rows left."""
    names = ("max", "high", "partial", "low", "none")
    return _Record(**dict(zip(names, _ask("spare-rows", handle, "640").numbers(5), strict=True)))


def nvmlDeviceGetSramEccErrorStatus(handle: int, status: Any) -> int:
    """Fill the structure that `status`, made by ctypes.byref, refers to."""
    numbers = _ask("sram", handle, "0").numbers(3)
    into = status._obj
    into.bThresholdExceeded, into.aggregateUncParity, into.aggregateUncSecDed = numbers
    return NVML_SUCCESS


def nvmlDeviceGetUnrepairableMemoryFlag_v1(handle: int) -> int:
    """Return whether the GPU has memory that cannot be repaired."""
    return _ask("unrepairable", handle, "0").numbers(1)[0]


def nvmlDeviceGetRetiredPages(handle: int, sourceFilter: int) -> list[int]:
    """Return the addresses, made up, of the pages retired for one cause."""
    if sourceFilter not in (0, 1):
        raise NVMLError(2)
    pages = _ask("retired", handle, "error:3").numbers(2)[sourceFilter]
    return [0x1000 * (page + 1) for page in range(pages)]


def nvmlDeviceGetRetiredPagesPendingStatus(handle: int) -> int:
    """Return 1 where pages wait for a reset to be retired."""
    return _ask("retirement-pending", handle, "error:3").numbers(1)[0]


def nvmlDeviceGetFieldValues(handle: int, fieldIds: list[int | tuple[int, int]]) -> list[_Record]:
    """Return a record for each field, an id or an id and its scope, with its own nvmlReturn."""
    _ask("fields", handle, "0").check()
    return [_field(handle, *(field if isinstance(field, tuple) else (field, 0))) for field in fieldIds]


def _field(handle: int, number: int, scope: int) -> _Record:
    kind, otherwise = FIELDS.get(number, (NVML_VALUE_TYPE_UNSIGNED_INT, "error:3"))
    answer = _ask(f"field-{number}.{scope}" if scope else f"field-{number}", handle, otherwise)
    value = 0 if answer.code else answer.numbers(1)[0]
    return _Record(
        fieldId=number, scopeId=scope, valueType=kind, nvmlReturn=answer.code, value=c_nvmlValue_t(ullVal=value)
    )


def nvmlDeviceGetCurrentClocksThrottleReasons(handle: int) -> int:
    """Return the bits that say why the clocks are low."""
    return _ask("clocks", handle, "1").numbers(1)[0]


def nvmlDeviceGetCurrentClocksEventReasons(handle: int) -> int:
    """Return the same; drivers before 535 do not know it by this name."""
    _ask("clocks-event", handle, "0").check()
    return nvmlDeviceGetCurrentClocksThrottleReasons(handle)


def nvmlDeviceGetMarginTemperature(handle: int) -> int:
    """Return the degrees until the GPU slows down."""
    return _ask("margin", handle, "30").numbers(1)[0]


def nvmlDeviceGetNvLinkState(device: int, link: int) -> int:
    """Return 1 where a link is up."""
    return _digit(_ask("nvlink", device, "1" * 18), link)


def nvmlDeviceGetNvLinkRemoteDeviceType(handle: int, link: int) -> int:
    """Return what is at the other end of a link: 0 GPU, 2 switch."""
    return _digit(_ask("nvlink-remote", handle, "2" * 18), link)


def _digit(answer: _Answer, link: int) -> int:
    if not answer.check().text[link:]:
        raise NVMLError(2)
    return (ord(answer.text[link]) - ord("0")) % 2**32


def nvmlDeviceGetGpuFabricInfo(device: int, gpuFabricInfo: Any) -> int:
    """Fill the structure that `gpuFabricInfo`, made by ctypes.byref, refers to."""
    into = gpuFabricInfo._obj
    into.state, into.status, _ = _ask("fabric", device, "3,0,426").numbers(3)
    return NVML_SUCCESS


def nvmlDeviceGetGpuFabricInfoV(device: int, gpuFabricInfo: Any) -> int:
    """Fill the newer structure."""
    _ask("fabric-v", device, "0").check()
    gpuFabricInfo._obj.healthMask = _ask("fabric", device, "3,0,426").numbers(3)[2]
    return nvmlDeviceGetGpuFabricInfo(device, gpuFabricInfo)


def nvmlDeviceGetComputeRunningProcesses_v3(handle: int) -> list[_Record]:
    """Return the processes that compute on the GPU."""
    return _processes(_ask("compute", handle))


def nvmlDeviceGetGraphicsRunningProcesses_v3(handle: int) -> list[_Record]:
    """Return the processes that draw."""
    return _processes(_ask("graphics", handle))


def nvmlDeviceGetMPSComputeRunningProcesses_v3(handle: int) -> list[_Record]:
    """Return the processes that share the GPU by MPS."""
    return _processes(_ask("mps", handle))


def _processes(answer: _Answer) -> list[_Record]:
    pairs = [word.partition(":") for word in answer.check().text.split(",") if word]
    return [_Record(pid=int(pid), usedGpuMemory=_bytes(int(memory or 0))) for pid, _, memory in pairs]


def _bytes(number: int) -> int | None:
    return None if number == 2**64 - 1 else number


def nvmlDeviceGetMemoryInfo(handle: int, version: int | None = None) -> _Record:
    """Return a record with the bytes in use; `version` for the newer call."""
    if version:
        _ask("memory-v2", handle, "0").check()
    return _Record(used=_ask("memory", handle, "0").numbers(1)[0])


def nvmlDeviceGetUtilizationRates(handle: int) -> _Record:
    """Return a record with the percentages of the time in which kernels ran, and memory was read or written."""
    return _Record(**dict(zip(("gpu", "memory"), _ask("rates", handle, "0,0").numbers(2), strict=True)))


def nvmlDeviceGetSamples(device: int, sampling_type: int, timeStamp: int) -> tuple[int, list[_Record]]:
    """Return the type of the values, and two samples of one kind, of which the first is 0."""
    answer = _ask("samples", device, "0,0,0,0")
    if not 1 <= sampling_type <= 4:
        raise NVMLError(2)
    values = (0, answer.numbers(4)[sampling_type - 1])
    return NVML_VALUE_TYPE_UNSIGNED_INT, [_Record(sampleValue=c_nvmlValue_t(uiVal=value)) for value in values]


def nvmlDeviceGetMigMode(device: int) -> list[int]:
    """Return whether MIG is on now, and after the next reset."""
    return _ask("mig", device, "0,0").numbers(2)


def nvmlDeviceGetPersistenceMode(handle: int) -> int:
    """Return 1 where the driver stays loaded without users."""
    return _ask("persistence", handle, "1").numbers(1)[0]


def nvmlDeviceGetPowerManagementLimit(handle: int) -> int:
    """Return the power limit, in mW."""
    return _ask("power-limit", handle, "700000").numbers(1)[0]


def nvmlDeviceGetMaxClockInfo(handle: int, type: int) -> int:
    """Return the highest clock of the SM or the memory, in MHz."""
    return _ask("max-clocks", handle, "1980,2619").numbers(2)[type == NVML_CLOCK_MEM]


def nvmlDeviceGetApplicationsClock(handle: int, type: int) -> int:
    """Return the clock of applications, the same way."""
    return _ask("app-clocks", handle, "1980,2619").numbers(2)[type == NVML_CLOCK_MEM]


def __getattr__(name: str) -> Callable[..., NoReturn]:
    """Return a function that NVML of this driver does not have."""
    if not name.startswith("nvml"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def missing(*arguments: Any) -> NoReturn:
        raise NVMLError(13 if _started else 1)

    return missing
