"""NVML as a child asks it, which may hang. Judges nothing: codes are NVML's own, 0 for fine.

The module pynvml (nvidia-ml-py) is looked for where Python keeps its packages, or first in a folder that is named.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from _gpus import address_of
from _verdict import write_json

Question = Callable[[Any, Any], dict[str, int]]  # of the module pynvml and the handle of a GPU


def child(program: str, pynvml: Path | None) -> list[str]:
    """Return the command by which `program` asks NVML; the path of the answer file is to be appended.

    Where `pynvml` names the folder of the only module it needs, Python starts without the folders of its packages.
    """
    folder = ["-S"] if pynvml else []
    options = [f"--pynvml={pynvml.absolute()}"] if pynvml else []
    return [sys.executable, "-E", "-s", *folder, "-B", str(Path(program).resolve()), *options, "--probe"]


def ask_nvml(answer: Path, folder: Path | None, questions: Mapping[str, Question]) -> None:
    """Ask NVML for every GPU and keep in `answer` what is known so far. May hang: run it in a child.

    Writes {"init": code, "count": N, "gpus": [{"index", "error", "address", "uuid", "serial"}], "at": what is asked,
    "done": true at the end}. With `questions`, by name, a GPU that answers has two more: "facts" by question, and
    "refused", the code by question. What went wrong outside NVML is {"failed": cause}.
    """
    said: dict[str, Any] = {"gpus": []}

    def tell(**more: Any) -> None:
        said.update(more)
        write_json(answer, said)

    try:
        pynvml = _load(folder)

        def start() -> None:
            tell(at="init")
            pynvml.nvmlInit()
            tell(at="count")
            tell(count=pynvml.nvmlDeviceGetCount())

        said["init"] = _code(pynvml, start)
        for index in range(said.get("count", 0)):
            said["gpus"].append(_ask_gpu(pynvml, index, questions, tell))
    except Exception as error:
        said["failed"] = f"{type(error).__name__}: {error}"
    tell(done=True)


def answering(said: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the GPUs that NVML answers for."""
    return [gpu for gpu in said.get("gpus", []) if gpu.get("error") == 0]


def _load(folder: Path | None) -> Any:
    if folder:
        if not any((folder / name).exists() for name in ("pynvml.py", "pynvml")):
            raise FileNotFoundError(f"--pynvml {folder}: there is no module pynvml")
        sys.path.insert(0, str(folder))
    import pynvml

    return pynvml


def _ask_gpu(pynvml: Any, index: int, questions: Mapping[str, Question], tell: Callable[..., None]) -> dict[str, Any]:
    """Ask one GPU who it is, then each question by itself, so that one refusal hides no other answer."""
    tell(at=f"GPU index {index}")
    gpu = _identify(pynvml, index)
    if not questions or gpu["error"]:
        return gpu
    gpu |= {"facts": {}, "refused": {}}
    for name, question in questions.items():
        tell(at=f"GPU index {index}, {name}")
        facts, code = _put(pynvml, index, question)
        gpu["refused" if code else "facts"][name] = code or facts
    return gpu


def _identify(pynvml: Any, index: int) -> dict[str, Any]:
    """Ask who one GPU is; its error stays its own, so that no other is hidden."""
    gpu: dict[str, Any] = {"index": index}

    def fill() -> None:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        gpu["address"] = address_of(_string(pynvml.nvmlDeviceGetPciInfo(handle).busId))
        gpu["uuid"] = _string(pynvml.nvmlDeviceGetUUID(handle))

    def fill_serial() -> None:
        gpu["serial"] = _string(pynvml.nvmlDeviceGetSerial(pynvml.nvmlDeviceGetHandleByIndex(index)))

    gpu["error"] = _code(pynvml, fill)
    if gpu["error"] == 0 and _code(pynvml, fill_serial) == pynvml.NVML_ERROR_GPU_IS_LOST:
        gpu["error"] = pynvml.NVML_ERROR_GPU_IS_LOST  # any other error is a card without a serial number
    return gpu


def _put(pynvml: Any, index: int, question: Question) -> tuple[dict[str, int], int]:
    """Return the facts that a question brings, and the code of its refusal, 0 for none."""
    try:
        return question(pynvml, pynvml.nvmlDeviceGetHandleByIndex(index)), 0
    except pynvml.NVMLError as error:
        return {}, int(error.value)


def _code(pynvml: Any, call: Callable[[], Any]) -> int:
    try:
        call()
    except pynvml.NVMLError as error:
        return int(error.value)
    return 0


def _string(value: Any) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
