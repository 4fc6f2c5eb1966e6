"""What the page of each Condition says that is data: from the table of detectors, the policies and the templates."""

import runpy
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from remediator.core import devices
from remediator.core.device_count import DEVICES_MISSING
from remediator.core.idle_result import IDLE_TEST_FAILED
from remediator.core.node_versions import NODE_DRIFT
from remediator.core.reboot_loop import REBOOT_LOOP
from remediator.core.rejections import PODS_REJECTED
from remediator.core.stuck_pods import STUCK_PODS
from tests.harness import yaml_files

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "conditions"
Spec = Mapping[str, Any]

# What each word means; {deadline} is that of the policy.
MEANING = {
    "now": "**now**: the first operation starts as soon as the Condition has lasted so long.",
    "waits": "**waits**: new work is kept off at once; the first operation starts when no Pod works on the node, at the latest after {deadline}.",  # noqa: E501
    "handed over": "**handed over**: new work is kept off for a person; what runs goes on.",
    "told": "**told**: a person reads it, and nothing is done to the node.",
}
DRY_RUN = "As shipped (`mode: DryRun`) nothing of this happens, and no issue is opened: `remediator explain NODE` says what would. With `Enforce` it happens."  # noqa: E501
COMMAND = "kubectl -n remediator-system exec POD -c node-problem-detector -- /opt/remediator/detectors/"
OF_CONTROLLER = (
    *(devices.CONDITION, DEVICES_MISSING, IDLE_TEST_FAILED, NODE_DRIFT),
    *(PODS_REJECTED, REBOOT_LOOP, STUCK_PODS),
)
HEAD = "| policy | acts when | then | ladder | proof before it is given back | ticket |\n|---|---|---|---|---|---|"


@cache
def detectors() -> Mapping[str, Spec]:
    """The table of detectors, by name."""
    rows: Mapping[str, Spec] = runpy.run_path(str(ROOT / "deploy/npd/generate.py"))["rows"]()
    return rows


class Entry(NamedTuple):
    """One policy that acts on a Condition, and the entry of `when` that names it."""

    policy: str
    spec: Spec
    when: Spec


@cache
def entries() -> Mapping[str, tuple[Entry, ...]]:
    """Which shipped policies act on each Condition; none where only a policy of a user's own, or an example, does."""
    found: dict[str, tuple[Entry, ...]] = dict.fromkeys((*detected(), *OF_CONTROLLER), ())
    for path in sorted((ROOT / "deploy" / "policies").glob("*.yaml")):
        policy = yaml_files.read(path)
        for when in policy["spec"]["when"]:
            before = found.get(when["condition"], ())
            found[when["condition"]] = (*before, Entry(policy["metadata"]["name"], policy["spec"], when))
    return dict(sorted(found.items()))


def urgency(spec: Spec) -> str:
    """What the policy does, in the words of the table of detectors."""
    mode = spec.get("urgency", {}).get("mode", "Now")
    if mode == "Now" and [rung["operation"] for rung in spec["ladder"]] == ["cordon"]:
        return "handed over"
    return {"Now": "now", "WhenIdle": "waits", "Never": "told"}[mode]


def _operation(rung: Spec) -> str:
    """An operation of a ladder with its parameters, and whether the node is drained for it."""
    template = yaml_files.read(ROOT / "operations" / f"{rung['operation'].replace('-', '_')}.yaml")
    drains = template["spec"]["drain"]["strategy"] != "None"
    drain = "drains first" if drains else "drains" if rung["operation"] == "drain" else "no drain"
    given = [f"{name}: {value}" for name, value in rung.get("parameters", {}).items()]
    return f"`{rung['operation']}` ({'; '.join([*given, drain])})"


def _row(entry: Entry) -> str:
    spec, when = entry.spec, entry.when
    ladder = ", ".join(map(_operation, spec.get("ladder", ()))) if urgency(spec) != "told" else "-"
    probe = spec.get("verify", {}).get("probe", "")
    acts = f"{when.get('status', 'True')} for {when.get('for', '0s')}"
    acts += f", of {', '.join(map('`{}`'.format, when['reasons']))}" if "reasons" in when else ""
    return (
        f"| `{entry.policy}` | {acts} | **{urgency(spec)}** | {ladder} | {f'`{probe}`' if probe else '-'} "
        f"| {spec['ticket']['when']} |"
    )


def wait_or_now(condition: str) -> str:
    """Which policies act, how soon, and by what ladder."""
    found = entries()[condition]
    if not found:
        return "No shipped policy acts on it."
    meanings = dict.fromkeys(
        MEANING[urgency(entry.spec)].format(deadline=entry.spec.get("urgency", {}).get("deadline", ""))
        for entry in found
    )
    notes = [*meanings, *([DRY_RUN] if all(entry.spec["mode"] == "DryRun" for entry in found) else [])]
    return "\n".join([HEAD, *map(_row, found), "", *(f"* {note}" for note in notes)])


def fleet(condition: str) -> str:
    """From how many nodes on a policy holds them all for one cause."""
    return "\n".join(map(_held, entries()[condition])) or "No shipped policy compares nodes by it."


def _held(entry: Entry) -> str:
    together = entry.spec["correlation"]
    keys = [key for key in together.get("by", ()) if key != "reason"]
    alike = "the same reason" if "reason" in together.get("by", ()) else "the same words"
    where = f", among nodes with the same label {' and '.join(f'`{key}`' for key in keys)}" if keys else ""
    return (
        f"* `{entry.policy}`: {together['nodes']} nodes or more within {together['within']} with {alike}{where} have "
        "one cause: no case of them starts, and one issue tells of all."
    )


def proof(condition: str) -> str:
    """How to run its detector by hand, as node-problem-detector runs it."""
    name = next(name for name, row in detectors().items() if row["condition"] == condition)
    # detector_stale is told of each detector; the page shows one.
    options = " ".join(detectors()[name]["args"][: 1 if name == "detector_stale" else None])
    return f"```text\n{COMMAND}{name}.py {f'{options} ' if options else ''}--explain\n```"


def _index() -> Iterator[str]:
    yield "| Condition | then | policy |\n|---|---|---|"
    for condition, found in entries().items():
        words = ", ".join(dict.fromkeys(urgency(entry.spec) for entry in found)) or "-"
        policies = ", ".join(f"`{entry.policy}`" for entry in found) or "-"
        yield f"| [`{condition}`](conditions/{condition}.md) | {words} | {policies} |"


def detected() -> frozenset[str]:
    """The Conditions of our detectors; the others are those of the kubelet and of the controller."""
    return frozenset(row["condition"] for row in detectors().values())


@cache
def drawings() -> Mapping[str, str]:
    """What is drawn into the pages of Conditions and into their index, by name."""
    return {
        "conditions": "\n".join(_index()),
        **{f"wait or now {condition}": wait_or_now(condition) for condition in entries()},
        **{f"fleet {condition}": fleet(condition) for condition in entries()},
        **{f"proof {condition}": proof(condition) for condition in detected()},
    }
