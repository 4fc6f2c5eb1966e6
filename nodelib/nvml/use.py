"""Whether a GPU is, or lately was, in use: a question for the child.

The driver keeps about a hundred samples of each kind, a sixth of a second to a second apart: those of the
last 17 seconds or more. A GPU in MIG mode keeps none. Reading them changes nothing.
"""

from typing import Any

from nodelib.nvml.fields import NOT_THERE
from nodelib.nvml.queries import Question

SAMPLES = (1, 2, 3, 4)  # NVML_{GPU,MEMORY,ENC,DEC}_UTILIZATION_SAMPLES
NOT_FOUND = 6  # nothing was sampled yet


def _use(nvml: Any, gpu: Any) -> dict[str, Any]:
    """The highest percentage of a time in which a kernel ran, memory was read or written, or video was coded."""
    now = nvml.nvmlDeviceGetUtilizationRates(gpu)
    kept = [_kept(nvml, gpu, kind) for kind in SAMPLES]
    return {"highest": max(now.gpu, now.memory, *map(max, kept)), "samples": sum(map(len, kept)) - len(kept)}


def _kept(nvml: Any, gpu: Any, kind: int) -> list[int]:
    """What the driver keeps of one kind, behind a 0."""
    try:
        _, samples = nvml.nvmlDeviceGetSamples(gpu, kind, 0)
    except nvml.NVMLError as error:
        if error.value not in NOT_THERE | {NOT_FOUND}:
            raise
        samples = []
    return [0, *(int(sample.sampleValue.uiVal) for sample in samples)]


QUESTIONS: dict[str, Question] = {"use": _use}
