"""MIG devices of a node, made again: a reset of a GPU destroys them.

The GPU operator's MIG manager makes those that the node's label names when it starts, or when the label changes.

Its Pod is restarted, and its own word is waited for: the label of its state. A word that stood there before counts only
when it has stood for a while after the start, or has changed since.
"""

import os
import time

from nodelib.contract.operation import Environment, Failed, NothingToDo
from nodelib.k8s.api import Api, Unreachable
from nodelib.k8s.case import look, patiently
from nodelib.k8s.daemon_pods import PATIENCE, WantedDaemonSet, restart

CONFIG, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
NONE = ("", "all-disabled")
MANAGER = WantedDaemonSet("MIG manager", ("nvidia-mig-manager", "*-nvidia-mig-manager"))
SETTLE, PAUSE = 30.0, 1.0  # seconds
NAMED = ("daemonSet", "namespace", "selector")  # PARAMETERS that mean the device plugin


def restore(environment: Environment, dry_run: bool, seconds: float) -> str:
    """Have the MIG devices made that the node's label wishes for, and return what was done; "" for nothing.

    Raises Refused as a restart does, Failed when the manager fails or takes longer than `seconds`.
    """
    api = Api(os.environ, environment.token_dir)
    wish = patiently(lambda: labels(api, environment), PATIENCE).get(CONFIG, "")
    if wish in NONE:
        return ""
    own = {name: value for name, value in environment.parameters.items() if name not in NAMED}
    try:
        sentence = restart(environment._replace(parameters=own), dry_run, MANAGER)
    except NothingToDo:
        return ""  # whoever divides the GPUs here, it is none that we know
    if dry_run:
        return f"{sentence}, which makes MIG devices as {wish} says"
    wait(api, environment, wish, seconds)
    return f"MIG devices are as {wish} says"


def wait(api: Api, environment: Environment, wish: str, seconds: float) -> None:
    """Wait until the MIG manager says that it is done. Raises Failed when it says that it has failed, or nothing."""
    begun, first, changed = time.monotonic(), None, False
    while True:
        waited = time.monotonic() - begun
        try:
            state = labels(api, environment).get(STATE, "")
        except Unreachable as error:
            state = f"unknown, the API server does not answer: {error}"
        first = state if first is None else first
        changed = changed or state != first
        if is_news(state, changed, waited):
            if state == "success":
                return
            raise Failed(f"no MIG devices as {wish} says: the MIG manager sets {STATE} to failed; see its log")
        if waited >= seconds:
            raise Failed(f"no MIG devices as {wish} says after {seconds:g} s: {STATE} is {state or 'not set'}")
        time.sleep(PAUSE)


def is_news(state: str, changed: bool, waited: float) -> bool:
    """Whether this is the last word of a MIG manager that was started `waited` seconds ago."""
    return state in ("success", "failed") and (changed or waited >= SETTLE)


def labels(api: Api, environment: Environment) -> dict[str, str]:
    """Return the node's labels, while it is ours. Raises Refused, Unreachable."""
    return look(api, environment).node["metadata"].get("labels") or {}
