"""NVML as a child asks it, which may hang, and its answer, read back. Judges nothing: codes are NVML's own, 0 for fine.

The module pynvml (nvidia-ml-py) is looked for where Python keeps its packages, or first in a folder that is named.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nodelib.contract.npd import since_boot, write_json
from nodelib.host.gpus import address_of

NO_SUCH_FUNCTION, UNKNOWN_ERROR = 13, 999
PLACE_CHARS = 80

Question = Callable[[Any, Any], dict[str, Any]]  # of the module pynvml and the handle of a GPU; values: see is_sound


class Teller:
    """Writes what is known so far, for whoever waits; where the child is at, before each step, into a file beside it.

    That file has one size and is written in place, because it is written a hundred times and read only after a hang.
    """

    def __init__(self, answer: Path, **said: Any) -> None:
        self.said: dict[str, Any] = {**said, "gpus": []}
        self._answer = answer
        self._place = os.open(place_path(answer), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)

    def at(self, place: str) -> None:
        """Say what is asked next."""
        os.pwrite(self._place, place[:PLACE_CHARS].ljust(PLACE_CHARS).encode("ascii", "replace"), 0)

    def tell(self, **more: Any) -> None:
        """Add to what is known, and write all of it."""
        self.said.update(more)
        write_json(self._answer, self.said)


def place_path(answer: Path) -> Path:
    """Return the file that says where the child that writes `answer` is at."""
    return answer.with_suffix(".at")


def packages() -> Path:
    """Return the folder of packages beside this interpreter, also of a virtual environment."""
    return Path(sys.executable).parent.parent / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"


def load_pynvml(folder: Path | None) -> Any:
    """Import pynvml. Python was started without the folders of its packages, which are looked up only when needed."""
    if folder:
        if not any((folder / name).exists() for name in ("pynvml.py", "pynvml")):
            raise FileNotFoundError(f"--pynvml {folder}: there is no module pynvml")
        sys.path.insert(0, str(folder))
    elif (packages() / "pynvml.py").exists():
        sys.path.append(str(packages()))  # without what every .pth file there asks for, which takes longer
    else:
        import site

        site.main()
    import pynvml

    return pynvml


def ask_nvml(teller: Teller, load: Callable[[], Any], questions: Mapping[str, Question]) -> None:
    """Ask NVML, the module that `load` returns, who every GPU is, then each of them each question. May hang: a child's.

    Tells {"init": code, "count": N, "gpus": [{"index", "error", "address", "uuid", "serial"}], "done": true at the
    end}. A GPU that answers has two more: "facts" by question, and "refused", the code by question. What went wrong
    outside NVML is {"failed": cause}; in one question only, {"odd": {question: cause}}, and it counts as refused.
    """
    try:
        pynvml = load()

        def start() -> None:
            teller.at("init")
            pynvml.nvmlInit()
            teller.at("count")
            teller.tell(count=pynvml.nvmlDeviceGetCount())

        teller.tell(init=_code(pynvml, start))
        gpus = teller.said["gpus"]
        handles = [_ask_gpu(pynvml, index, gpus, teller) for index in range(teller.said.get("count", 0))]
        for name, question in questions.items():
            for handle, gpu in zip(handles, gpus, strict=True):
                if gpu["error"] == 0:
                    teller.at(f"GPU index {gpu['index']}, {name}")
                    _put(pynvml, handle, gpu, (name, question), teller.said)
    except Exception as error:
        teller.said["failed"] = f"{type(error).__name__}: {error}"
    teller.tell(done=True, answered_at=since_boot())


def answering(answers: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the GPUs that NVML answers for."""
    return [gpu for gpu in answers.get("gpus", []) if gpu.get("error") == 0]


def is_sound(value: Any) -> bool:
    """Tell whether an answer may have such a value: a number, a text, or a list of these.

    >>> is_sound([1, "two"]), is_sound(None), is_sound({})
    (True, False, False)
    """
    return type(value) in (int, str) or (type(value) is list and all(type(item) in (int, str) for item in value))


def nonsense(answers: Mapping[str, Any]) -> str:
    """Return what is wrong with what a child left, "" for nothing: readers need not look at types again."""
    gpus = answers.get("gpus", [])
    if type(answers.get("driver", "")) is not str:
        return "the driver's version is no text"
    if not all(type(answers.get(key, 0)) is int for key in ("init", "count")):
        return "init or count is no number"
    if answers.get("done") not in (None, False) and not answers.keys() & {"init", "failed"}:
        return "it does not say whether NVML was started"
    if not isinstance(gpus, list) or not all(map(_is_gpu, gpus)):
        return "a GPU is not described as it should be"
    indices = [gpu["index"] for gpu in gpus]
    if sorted(indices) != list(range(len(gpus))) or len(gpus) > answers.get("count", 0):
        return "it does not count its GPUs"
    complete = answers.get("done") is not True or answers.get("init") != 0 or len(gpus) == answers.get("count")
    return "" if complete or "failed" in answers else "not every GPU was asked"


def _is_gpu(gpu: Any) -> bool:
    if not isinstance(gpu, dict):
        return False
    facts, refused = gpu.get("facts", {}), gpu.get("refused", {})
    numbers = (gpu.get("index"), gpu.get("error"), *(refused.values() if isinstance(refused, dict) else [None]))
    known = ("address", "uuid", "serial") if gpu.get("error") == 0 else ()
    return (
        all(type(number) is int and number >= 0 for number in numbers)
        and all(type(gpu.get(key, "")) is str for key in known)
        and isinstance(facts, dict)
        and all(isinstance(fact, dict) and all(map(is_sound, fact.values())) for fact in facts.values())
    )


def _ask_gpu(pynvml: Any, index: int, gpus: list[dict[str, Any]], teller: Teller) -> Any:
    """Ask one GPU who it is, add that to `gpus` and return its handle, None where it has none."""
    gpu: dict[str, Any] = {"index": index, "error": 0}
    handle = None
    teller.at(f"GPU index {index}")

    def fill() -> None:
        nonlocal handle
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        gpu["address"] = address_of(_string(pynvml.nvmlDeviceGetPciInfo(handle).busId))
        gpu["uuid"] = _string(pynvml.nvmlDeviceGetUUID(handle))

    def fill_serial() -> None:
        gpu["serial"] = _string(pynvml.nvmlDeviceGetSerial(handle))

    gpu["error"] = _code(pynvml, fill)
    if gpu["error"] == 0 and _code(pynvml, fill_serial) == pynvml.NVML_ERROR_GPU_IS_LOST:
        gpu["error"] = pynvml.NVML_ERROR_GPU_IS_LOST  # any other error is a card without a serial number
    gpu |= {} if gpu["error"] else {"facts": {}, "refused": {}}
    gpus.append(gpu)
    teller.tell()
    return handle


def _put(pynvml: Any, handle: Any, gpu: dict[str, Any], asked: tuple[str, Question], answers: dict[str, Any]) -> None:
    """Put one question to one GPU by itself, so that neither a refusal nor a mistake in it hides another answer."""
    name, question = asked
    try:
        facts = question(pynvml, handle)
        if not all(map(is_sound, facts.values())):
            raise TypeError(f"no facts: {facts}")
        gpu["facts"][name] = facts
    except pynvml.NVMLError as error:
        gpu["refused"][name] = int(error.value)
    except Exception as error:
        older = isinstance(error, AttributeError) and error.obj is pynvml  # this pynvml does not know the function yet
        gpu["refused"][name] = NO_SUCH_FUNCTION if older else UNKNOWN_ERROR
        answers.setdefault("odd", {})[name] = f"{type(error).__name__}: {error}"[:200]


def _code(pynvml: Any, call: Callable[[], Any]) -> int:
    try:
        call()
    except pynvml.NVMLError as error:
        return int(error.value)
    return 0


def _string(value: Any) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
