"""How a fault ended, held against what the story tells. Pure, but for reading the view."""

from collections.abc import Sequence
from typing import NamedTuple

from remediator_sim.plain import Object
from remediator_sim.scenarios.view import View

OVER = ("Recovered", "Escalated", "Cancelled")


class Ending(NamedTuple):
    """The end of one fault: a word for it, and what is not as the story tells, each a sentence."""

    outcome: str
    wrong: tuple[str, ...] = ()

    def also(self, holds: bool, said: str) -> "Ending":
        """The same end, where one more thing had to be so."""
        return self if holds else self._replace(wrong=(*self.wrong, said))


def recovered(
    view: View, node: str, policy: str, operations: Sequence[str], reboots: Sequence[object]
) -> Ending | None:
    """The node is back in service, and these operations, no others and each once, were what it took."""
    case = view.case(node, policy)
    if case is None or not _over(case) or case["metadata"].get("finalizers"):
        return None
    phase, tried = case["status"]["phase"], _attempts(case)
    expected = sum(name == "reboot" for name in operations)
    checks = (
        (phase == "Recovered", f"its case ended {phase}: {case['status'].get('message', '')}"),
        (tried == [(name, "Succeeded") for name in operations], f"tried were {_said(tried)}"),
        (len(reboots) == expected, f"{node} was rebooted {len(reboots)} times, not {expected}"),
        (not view.marks(node), f"{node} still carries {', '.join(view.marks(node))}"),
    )
    return Ending(phase, tuple(said for holds, said in checks if not holds))


def handed_over(view: View, node: str, policy: str, operations: Sequence[str], issues: Sequence[str]) -> Ending | None:
    """Nothing helped: every rung was tried once, a person has one issue with the evidence, the node stays out."""
    case = view.case(node, policy)
    phase = (case or {}).get("status", {}).get("phase", "")
    if case is None or phase not in OVER or (phase == "Escalated" and not issues):
        return None
    tried = [name for name, _ in _attempts(case)]
    checks = (
        (phase == "Escalated", f"its case ended {phase}: {case['status'].get('message', '')}"),
        (tried == list(operations), f"tried were {', '.join(tried) or 'none'}"),
        (len(issues) == 1, f"{len(issues)} issues are open for {node}"),
        (bool(view.marks(node)), f"{node} was given back"),
        (bool(case["status"].get("evidence")), "the case has no evidence"),
    )
    return Ending(phase, tuple(said for holds, said in checks if not holds))


def called(
    view: View, nodes: Sequence[str], policy: str, reboots: int, opened: Sequence[str], still_open: Sequence[str]
) -> Ending | None:
    """Nothing was done to any node, one issue was opened for all of them, and it was closed when the cause was gone."""
    cases = [view.case(node, policy) for node in nodes]
    if not all(case is not None and _over(case) for case in cases) or still_open:
        return None
    found = [case for case in cases if case is not None]
    phases = sorted({case["status"]["phase"] for case in found})
    touched = [case["spec"]["nodeName"] for case in found if _attempts(case)]
    checks = (
        (phases == ["Recovered"], f"cases ended {', '.join(phases)}"),
        (not touched, f"operations ran on {', '.join(touched)}"),
        (reboots == 0, f"{reboots} of the nodes were rebooted"),
        (len(opened) == 1, f"{len(opened)} issues were opened for one file server"),
    )
    return Ending("Told", tuple(said for holds, said in checks if not holds))


def _over(case: Object) -> bool:
    return bool(case["status"].get("endedAt")) if "status" in case else False


def _attempts(case: Object) -> list[tuple[str, str]]:
    return [(one["template"], one.get("outcome", "")) for one in case["status"].get("attempts", ())]


def _said(tried: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name} ({outcome or 'running'})" for name, outcome in tried) or "none"
