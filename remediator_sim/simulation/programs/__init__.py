"""The programs of operations as models: how long they take, what they do to their node, and how they end."""

from remediator_sim.simulation.programs.cordon import cordon
from remediator_sim.simulation.programs.daemon import AGENT, PLUGIN, restart
from remediator_sim.simulation.programs.host import HOSTED, collect_diagnostics, gpu_check, hosted, reboot
from remediator_sim.simulation.programs.job_drain import drain_jobs
from remediator_sim.simulation.programs.power import power_cycle
from remediator_sim.simulation.programs.run import DONE, FAILED, REFUSED, STOPPED, Ended, Program, Run, main, plainly

__all__ = ["DONE", "FAILED", "PROGRAMS", "REFUSED", "STOPPED", "WATCHDOG", "Ended", "Program", "Run", "plainly"]

PROGRAMS: dict[str, Program] = {
    "collect-diagnostics": main(collect_diagnostics),
    "cordon": main(cordon),
    "drain": main(drain_jobs),
    "gpu-check": main(gpu_check),
    "power-cycle": main(power_cycle),
    "reboot": main(reboot),
    "restart-cni": main(restart(AGENT)),
    "restart-device-plugin": main(restart(PLUGIN)),
} | {template: main(hosted(about)) for template, about in HOSTED.items()}

# What a watchdog does: by which of these programs, and what it says in PARAMETERS itself.
WATCHDOG: dict[str, tuple[str, dict[str, str]]] = {
    "reboot-by-watchdog": ("reboot", {}),
    "restart-kubelet": ("restart-service", {"service": "kubelet"}),
    "restart-runtime": ("restart-service", {"service": "runtime"}),
}
