"""The operations that a watchdog carries out, and the parameters that its orders may give: it refuses all else."""

from collections.abc import Mapping

_RESTART = frozenset({"restartSeconds", "settleSeconds", "healthzPort"})
WATCHDOG_OPERATIONS: Mapping[str, frozenset[str]] = {
    "restart-kubelet": _RESTART,
    "restart-runtime": _RESTART,
    "reboot-by-watchdog": frozenset({"waitSeconds", "lastResort"}),
}
