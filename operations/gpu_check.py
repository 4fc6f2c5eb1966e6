#!/usr/bin/env -S python3 -I -S -B
"""Put every GPU of the node to work for a moment: is NVML well, does memory keep what is written, is a product right?

NVML must list each GPU and refuse none of the plain questions. Then, through the CUDA driver's library, memory is
filled with two patterns and read back, and two matrices are multiplied; every bit is compared. A GPU on which somebody
computes is not touched. Changes nothing; takes a few seconds a GPU.

Without a CUDA driver library in the container (no GPU runtime, or NVIDIA_DRIVER_CAPABILITIES without "compute") it says
"cannot tell" and exits 2: that is neither health nor a fault. Remedy: run the Pod with the NVIDIA runtime class.

PARAMETERS: megabytes (of each GPU's memory, default 1024), seconds (for all GPUs, default 120).

Exit codes: 0 all GPUs work, 1 one does not, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

import json
from typing import Any

from nodelib.contract.operation import Environment, Failed, Refused, main
from nodelib.contract.parameters import number
from nodelib.host.commands import run_here
from nodelib.host.cuda import Broken, Cuda, Missing

HEALTH, WORK = "--health", "--work"  # the two children
MEGABYTES, SECONDS, HEALTH_SECONDS = 1024, 120, 60


def check(environment: Environment, dry_run: bool) -> str:
    """Ask NVML, then put each GPU to work; return the sentence."""
    megabytes = int(number(environment.parameters, "megabytes", MEGABYTES, least=1, most=1 << 20))
    seconds = number(environment.parameters, "seconds", SECONDS, least=1)
    if dry_run:
        return f"would write, read and multiply on every idle GPU: {megabytes} MiB each, {seconds:g} s in all"
    health = ask([HEALTH], HEALTH_SECONDS, "NVML")
    require_healthy(health)
    listed = idle(health)
    work = ask([WORK, str(megabytes)], seconds, "a GPU")
    require_healthy(work)
    return judge(listed, work)


def ask(words: list[str], seconds: float, who: str) -> list[dict[str, Any]]:
    """Return what a child of this program said, a JSON object a line. Raises Failed when it does not end."""
    flags = ["-I"] if words[0] == HEALTH else ["-I", "-S"]  # pynvml lies where packages are
    result = run_here([sys.executable, *flags, __file__, *words], seconds)
    lines = [found for line in result.text.splitlines() if isinstance(found := _json(line), dict)]
    if result.code is None:
        at = lines[-1].get("at", "the start") if lines else "the start"
        raise Failed(f"{who} has not answered within {seconds:g} s, at {at}: reboot the node")
    if result.code:
        raise Failed(f"the child that asks {who} ended with {result.code}: {result.last}")
    return lines


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def require_healthy(said: list[dict[str, Any]]) -> None:
    """Raise Refused where NVML cannot be asked, Failed where it or a GPU says no."""
    for one in said:
        if "missing" in one:
            raise Refused(f"cannot tell: {one['missing']}")
        if "broken" in one:
            raise Failed(f"{one.get('address', 'NVML')}: {one['broken']}")


def idle(health: list[dict[str, Any]]) -> set[str]:
    """Return the addresses of the GPUs that NVML lists. Raises Refused unless each of them may be put to work."""
    gpus = {short(one["address"]): one for one in health if "address" in one}
    if not gpus:
        raise Refused("cannot tell: NVML lists no GPU")
    for word, remedy in (("busy", "somebody computes on {}; drain the node first"), ("mig", "MIG is on for {}")):
        addresses = sorted(address for address, one in gpus.items() if one[word])
        if addresses:
            raise Refused(f"cannot tell: {remedy.format(', '.join(addresses))}")
    return set(gpus)


def judge(listed: set[str], work: list[dict[str, Any]]) -> str:
    """Return the sentence when every GPU that NVML lists was put to work and did it."""
    done = {short(one["address"]): one["compared"] for one in work if "compared" in one}
    missing = sorted(listed - set(done))
    if missing:
        raise Failed(f"CUDA does not show {', '.join(missing)}, which NVML lists: reboot the node")
    return f"all {len(done)} GPUs work: {min(done.values())} MiB each kept what was written, every product was right"


def short(address: str) -> str:
    """Return a PCI address as sysfs has it."""
    domain, _, rest = address.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def say(**what: Any) -> None:
    """Tell the parent one thing."""
    print(json.dumps(what), flush=True)


def ask_nvml() -> None:
    """Be the child that asks NVML who is there, who is well, and who is in use."""
    try:
        import pynvml as nvml
    except ImportError:
        say(missing="the module pynvml (nvidia-ml-py) is not in this image")
        return
    try:
        say(at="init")
        nvml.nvmlInit()
        for index in range(nvml.nvmlDeviceGetCount()):
            _ask_gpu(nvml, index)
    except nvml.NVMLError as error:
        absent = error.value in (nvml.NVML_ERROR_LIBRARY_NOT_FOUND, nvml.NVML_ERROR_DRIVER_NOT_LOADED)
        say(**{"missing" if absent else "broken": f"NVML answers {error.value} ({error})"})


def _ask_gpu(nvml: Any, index: int) -> None:
    say(at=f"GPU index {index}")
    try:
        gpu = nvml.nvmlDeviceGetHandleByIndex(index)
        address = nvml.nvmlDeviceGetPciInfo(gpu).busId
        nvml.nvmlDeviceGetUUID(gpu)
        busy = bool(nvml.nvmlDeviceGetComputeRunningProcesses(gpu))
        mig = _mig(nvml, gpu)
        say(address=address.decode() if isinstance(address, bytes) else address, busy=busy, mig=mig)
    except nvml.NVMLError as error:
        say(broken=f"GPU index {index}: NVML answers {error.value} ({error})")


def _mig(nvml: Any, gpu: Any) -> bool:
    """Whether the GPU is cut into instances, of which CUDA would show one; most GPUs do not know the question."""
    try:
        return bool(nvml.nvmlDeviceGetMigMode(gpu)[0])
    except nvml.NVMLError:
        return False


def put_to_work(megabytes: int) -> None:
    """Be the child that lets each GPU write, read and multiply. Raises nothing: what is wrong is told."""
    try:
        for gpu in Cuda().gpus():
            say(at=gpu.address)
            try:
                say(address=gpu.address, compared=gpu.probe(megabytes))
            except Broken as error:
                say(address=gpu.address, broken=str(error))
    except Missing as error:
        say(missing=str(error))
    except Broken as error:
        say(broken=str(error))


if __name__ == "__main__":
    if sys.argv[1:] == [HEALTH]:
        ask_nvml()
    elif sys.argv[1:2] == [WORK]:
        put_to_work(int(sys.argv[2]))
    else:
        main(check, __doc__)
