"""How a fault ended, compared with what its scenario expects. Pure, but for reading the view."""

from collections.abc import Sequence
from typing import NamedTuple

from remediator_sim.plain import Object
from remediator_sim.scenarios.view import View

OVER = ("Recovered", "Escalated", "Cancelled")


class FaultEnding(NamedTuple):
    """The end of one fault: one word for it, and a sentence for each thing that is not as expected."""

    outcome: str
    wrong: tuple[str, ...] = ()

    def also(self, holds: bool, sentence: str) -> "FaultEnding":
        """The same end, where one more thing had to be so."""
        return self if holds else self._replace(wrong=(*self.wrong, sentence))


def recovered(
    view: View, node: str, policy: str, operations: Sequence[str], reboots: Sequence[object]
) -> FaultEnding | None:
    """The node is back in service, and these operations, no others and each once, were what it took."""
    case = view.case(node, policy)
    if case is None or not _over(case) or case["metadata"].get("finalizers"):
        return None
    phase, attempts = case["status"]["phase"], _attempts(case)
    expected = sum(name == "reboot" for name in operations)
    checks = (
        (phase == "Recovered", f"its case ended {phase}: {case['status'].get('message', '')}"),
        (attempts == [(name, "Succeeded") for name in operations], f"its attempts were {_listed(attempts)}"),
        (len(reboots) == expected, f"{node} was rebooted {len(reboots)} times, not {expected}"),
        (not view.marks(node), f"{node} still carries {', '.join(view.marks(node))}"),
    )
    return FaultEnding(phase, _failed(checks))


def escalated(
    view: View, node: str, policy: str, operations: Sequence[str], issues: Sequence[str]
) -> FaultEnding | None:
    """Nothing helped: every rung was tried once, a person has one issue with the evidence, the node stays out."""
    case = view.case(node, policy)
    phase = (case or {}).get("status", {}).get("phase", "")
    if case is None or phase not in OVER or (phase == "Escalated" and not issues):
        return None
    templates = [name for name, _ in _attempts(case)]
    checks = (
        (phase == "Escalated", f"its case ended {phase}: {case['status'].get('message', '')}"),
        (templates == list(operations), f"its attempts were {', '.join(templates) or 'none'}"),
        (len(issues) == 1, f"{len(issues)} issues are open for {node}"),
        (bool(view.marks(node)), f"{node} was given back"),
        (bool(case["status"].get("evidence")), "the case has no evidence"),
    )
    return FaultEnding(phase, _failed(checks))


def only_issue(
    view: View, nodes: Sequence[str], policy: str, reboots: int, opened: Sequence[str], still_open: Sequence[str]
) -> FaultEnding | None:
    """No node was touched, one issue was opened for all of them, and it was closed when the cause was gone."""
    cases = [case for case in (view.case(node, policy) for node in nodes) if case is not None]
    if len(cases) < len(nodes) or not all(_over(case) for case in cases) or still_open:
        return None
    phases = sorted({case["status"]["phase"] for case in cases})
    touched = [case["spec"]["nodeName"] for case in cases if _attempts(case)]
    checks = (
        (phases == ["Recovered"], f"cases ended {', '.join(phases)}"),
        (not touched, f"operations ran on {', '.join(touched)}"),
        (reboots == 0, f"{reboots} of the nodes were rebooted"),
        (len(opened) == 1, f"{len(opened)} issues were opened for one file server"),
    )
    return FaultEnding("Recovered", _failed(checks))


def _failed(checks: Sequence[tuple[bool, str]]) -> tuple[str, ...]:
    return tuple(sentence for holds, sentence in checks if not holds)


def _over(case: Object) -> bool:
    return bool(case.get("status", {}).get("endedAt"))


def _attempts(case: Object) -> list[tuple[str, str]]:
    return [(attempt["template"], attempt.get("outcome", "")) for attempt in case["status"].get("attempts", ())]


def _listed(attempts: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name} ({outcome or 'running'})" for name, outcome in attempts) or "none"
