"""What the driver itself wants done to a GPU: the question, put by the child, and what its answer means.

From 5 on a number means one thing to one driver and another to the next: it is read with the driver's version.
"""

from typing import Any

from nodelib.host.driver import release
from nodelib.nvml.queries import Question

RECOVERY_ACTION = 230  # field of NVML, known to drivers from 570 on
RESET, REBOOT, P2P, LATER_RESET = "GPU reset", "node reboot", "drain P2P", "drain and reset"
BUS, IMEX, SYSTEM = "bus reset", "recover IMEX domain", "system reboot"

# Of nvmlDeviceGpuRecoveryAction_t: the same for all drivers.
ACTIONS = {1: RESET, 2: REBOOT, 3: P2P, 4: LATER_RESET}
# By the first release that has it so; the last row that is not newer than the driver counts.
LATER: tuple[tuple[int, dict[int, str]], ...] = (
    (570, {}),
    (580, {5: BUS}),
    (590, {}),
    (595, {5: IMEX}),
    (615, {5: IMEX, 6: BUS, 7: SYSTEM}),
)


def meaning(number: int, version: str) -> str:
    """Return what `number` asks for to a driver of `version` ("" for not known), "" where nobody can tell.

    >>> meaning(5, "580.82.07"), meaning(5, "595.45"), meaning(5, ""), meaning(1, "")
    ('bus reset', 'recover IMEX domain', '', 'GPU reset')
    """
    own = release(version)[:1]
    rows = [row for first, row in LATER if own and (first,) <= own]
    return ({**ACTIONS, **rows[-1]} if rows else ACTIONS).get(number, "")


def _action(nvml: Any, gpu: Any) -> dict[str, int]:
    [field] = nvml.nvmlDeviceGetFieldValues(gpu, [RECOVERY_ACTION])
    if field.nvmlReturn:
        raise nvml.NVMLError(field.nvmlReturn)
    return {"action": field.value.uiVal}


QUESTIONS: dict[str, Question] = {"recovery action": _action}
