"""How the node of a watchdog answers: its services come up when they are restarted."""

from tests.operations.scripted import Node, answer

UNIT = "MainPID=9\nLoadState=loaded\nActiveState=active\nKillMode=process\n"
WORKS = [
    answer("reset-failed"),
    answer("systemctl restart"),
    answer("curl", "ok"),
    answer("systemctl show", UNIT),
]
QUICK = {"settleSeconds": "0.1", "restartSeconds": "5"}


def restarts(node: Node) -> list[str]:
    """The units that were restarted."""
    return [call.split()[-1] for call in node.calls("systemctl restart")]
