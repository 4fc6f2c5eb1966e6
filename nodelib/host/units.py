"""Units of the node's own systemd, asked and changed through its systemctl."""

from typing import NamedTuple

from nodelib.contract.operation import Refused
from nodelib.host.commands import CommandOutput, run

ASK_SECONDS = 30.0
FIELDS = ("LoadState", "ActiveState", "MainPID", "KillMode")


class Unit(NamedTuple):
    """One service: `load` is loaded, masked or not-found; `active` as systemctl is-active says; `pid` 0 for none."""

    name: str
    load: str
    active: str
    pid: int
    kill_mode: str

    @property
    def runs(self) -> bool:
        """It is up."""
        return self.active == "active"


def look_at(name: str) -> Unit:
    """Return what systemd says of one service. Raises Refused when it does not answer."""
    result = run(("systemctl", "show", f"--property={','.join(FIELDS)}", f"{name}.service"), ASK_SECONDS)
    properties = dict(line.partition("=")[::2] for line in result.text.splitlines())
    if result.code != 0 or not properties.get("LoadState"):
        raise Refused(
            f"systemd does not report {name}: {why(result, ASK_SECONDS)}: reboot the node if it does not answer"
        )
    pid = properties.get("MainPID", "")
    return Unit(
        name,
        properties["LoadState"],
        properties.get("ActiveState", ""),
        int(pid) if pid.isdecimal() else 0,
        properties.get("KillMode", ""),
    )


def change(verb: str, name: str) -> tuple[str, ...]:
    """The command that starts, stops or restarts one service, or forgets how it failed."""
    return ("systemctl", verb, f"{name}.service")


def why(result: CommandOutput, seconds: float) -> str:
    """Why a command did not work."""
    return f"no answer within {seconds:g} s" if result.code is None else f"exit {result.code}: {result.last}"
