"""What the driver itself wants done to a GPU: the question, put by the child. Judges nothing."""

from typing import Any

from nodelib.nvml.queries import Question

RECOVERY_ACTION = 230  # field of NVML, known to drivers from 570 on


def _action(nvml: Any, gpu: Any) -> dict[str, int]:
    [field] = nvml.nvmlDeviceGetFieldValues(gpu, [RECOVERY_ACTION])
    if field.nvmlReturn:
        raise nvml.NVMLError(field.nvmlReturn)
    return {"action": field.value.uiVal}


QUESTIONS: dict[str, Question] = {"recovery action": _action}
