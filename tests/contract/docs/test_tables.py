"""Tables in the pages say what the tables in the code say."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from remediator.core.reasons import REMEDY, Reason
from remediator.scheduler import verdict
from remediator.sim.invariants.table import TEXTS
from tests.contract.docs.pages import PAGES, ROOT
from tests.contract.test_programs import DETECTORS, OPERATIONS, is_privileged, monitors, pod_spec, programs, templates

DOCS = ROOT / "docs"


def table(page: str, heading: str) -> list[list[str]]:
    """The rows of the table of a page whose first headings these are, cells without their blanks."""
    text = (DOCS / page).read_text()
    assert text.count(f"| {heading} |") == 1, f"{page} has no single table that begins with {heading}"
    rows = text[text.index(f"| {heading} |") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def bare(cell: str) -> str:
    return cell.strip("`")


def test_every_reason_that_holds_a_case_is_in_the_page_about_policies_with_its_remedy() -> None:
    rows = {bare(reason): remedy for reason, remedy in table("policies.md", "reason | what to do")}
    assert rows == {reason.value: remedy for reason, remedy in REMEDY.items()}


def test_every_word_that_the_pages_use_as_a_reason_exists() -> None:
    known = {reason.value for reason in (*Reason, *verdict.Reason)}
    rows = [bare(row[0]) for page in ("policies.md", "scheduler.md") for row in rows_of_reasons(page)]
    assert len(rows) > len(REMEDY)
    assert [word for word in rows if word not in known] == []


def rows_of_reasons(page: str) -> list[list[str]]:
    text = (DOCS / page).read_text()
    return [[word] for word in re.findall(r"^\| `([A-Z]\w+)` \|", text, flags=re.MULTILINE)]


def test_the_page_about_the_scheduler_has_every_reason_of_the_extender() -> None:
    assert {row[0] for row in rows_of_reasons("scheduler.md")} == {reason.value for reason in verdict.Reason}


def test_the_table_of_detectors_is_that_of_node_problem_detectors_configuration() -> None:
    rows = [(bare(row[0]), bare(row[1]), row[4]) for row in table("detectors.md", "Condition | program")]
    found = [json.loads(path.read_text()) for path in monitors()]
    assert sorted(rows) == sorted(
        (
            one["conditions"][0]["type"],
            one["rules"][0]["path"].removeprefix("/opt/remediator/"),
            one["pluginConfig"]["invoke_interval"].removesuffix("s") + " s",
        )
        for one in found
    )
    assert len(rows) == len(programs(DETECTORS))


def test_the_reasons_of_conditions_are_those_that_node_problem_detector_writes() -> None:
    rows = [tuple(map(bare, row)) for row in table("detectors.md", "Condition | reason when True")]
    found = [json.loads(path.read_text()) for path in monitors()]
    assert sorted(rows) == sorted(
        (one["conditions"][0]["type"], one["rules"][0]["reason"], one["conditions"][0]["reason"]) for one in found
    )


def of_detector(expression: str) -> Any:
    """The value of an expression where the detectors are, in a process of its own: their modules have common names."""
    code = f"import json, gpu_ecc, nfs_mount; print(json.dumps({expression}))"
    done = subprocess.run([sys.executable, "-B", "-c", code], cwd=DETECTORS, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_memory_faults_are_those_that_the_detector_knows_in_its_order() -> None:
    known = of_detector("[[f'{sign.words} ({sign.remedy})', sign.remedy] for sign in gpu_ecc.FAULTS]")
    rows = table("detectors.md", "fault in the text")
    assert [bare(row[0]) for row in rows] == [text for text, _ in known]
    assert [row[1].split()[0] for row in rows] == [remedy for _, remedy in known]


# What the page says in words of what a mount does, its server, and its counters: as nfs_mount has them.
STATFS = {"answers": "fine", "ESTALE": "stale", "could not be asked": "unclear", "another error": "failed"}
STATFS |= {"hangs": "stuck"}
SERVER = {
    "": ["silent", "unclear", "answers"],
    "answers": ["answers"],
    "silent or cannot be asked": ["silent", "unclear"],
}
MOVED = {"operations ended well": "move", "they did, and some timed out": "time out", "cannot be read": "unreadable"}
MOVED |= {"the last run saw no such hang": "first", "stand still": "stand"}
SAYS = {"False": 0, "True": 1, "Unknown": 2}


def test_what_is_made_of_a_mount_is_what_the_detector_makes_of_it() -> None:
    rows = table("detectors.md", "statvfs of the mount")
    cases = [
        (STATFS[mount], server, moved, SAYS[re.split("[:,]", says)[0]])
        for mount, servers, counters, says in rows
        for server in SERVER[servers]
        for moved in ([MOVED[counters]] if counters else MOVED.values())
    ]
    sights = [case[:3] for case in cases]
    made = of_detector(f"[int(nfs_mount.decide(nfs_mount.Sight(s, '', a, m))[0]) for s, a, m in {sights!r}]")
    assert made == [case[3] for case in cases]
    every = {(statfs, server, moved) for statfs in STATFS.values() for server in SERVER[""] for moved in MOVED.values()}
    assert set(sights) == every


def level(spec: dict[str, Any]) -> str:
    """The strictest level of Pod Security that a Pod keeps, as far as our templates go."""
    return "privileged" if is_privileged(spec) else "restricted"


def test_the_table_of_operations_is_that_of_their_templates() -> None:
    rows = {bare(row[0]): row for row in table("operations.md", "template | does")}
    specs = {yaml.safe_load(path.read_text())["metadata"]["name"]: path for path in templates()}
    assert set(rows) == set(specs)
    for name, path in specs.items():
        _, _, where, rights, pod_security = rows[name]
        spec, template = pod_spec(path), yaml.safe_load(path.read_text())["spec"]
        assert where == {"Target": "on the node", "Elsewhere": "on another node"}[template["runOn"]]
        assert ("no API token" in rights) is not spec["automountServiceAccountToken"]
        assert ("host PID" in rights) is bool(spec.get("hostPID"))
        assert ("network" in rights) is bool(spec.get("hostNetwork"))
        assert ("privileged," in rights) is is_privileged(spec)
        assert pod_security == level(spec)


@pytest.mark.parametrize("name", ["reset_gpu", "remount_nfs"])
def test_what_an_operation_refuses_with_is_what_its_page_says(name: str) -> None:
    text = (DOCS / "operations.md").read_text()
    section = text[text.index(f"\n## {name.replace('_', '-')}\n") :].split("\n## ")[1]
    rows = re.findall(r"^\| (`.+?) \|", section, flags=re.MULTILINE)
    spoken = [phrase for row in rows for phrase in re.findall(r"`([^`]{5,})`", row)]
    files = [OPERATIONS / f"{name}.py", OPERATIONS / "_smi.py", OPERATIONS / "_mounts.py"]
    source = "".join(path.read_text() for path in files)
    assert rows
    assert [phrase for phrase in spoken if phrase not in source] == []
    parameters = section[section.index("PARAMETERS:") :].split("\n\n")[0]
    named = [word for word in re.findall(r"`(\w+)`", parameters) if word[0].islower()]
    assert [word for word in named if f'"{word}"' not in source] == []
    assert len(named) == 3


def test_the_ten_promises_are_told_and_each_names_tests_that_are_there() -> None:
    rows = table("safety.md", "# | promise")
    assert [row[0] for row in rows] == list(TEXTS)
    for row in rows:
        paths = re.findall(r"`(tests/[^`]+)`", row[3])
        assert paths
        assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_option_that_a_page_names_belongs_to_a_program_of_ours(page: Path) -> None:
    sources = [ROOT / "remediator" / "cli.py", *DETECTORS.glob("*.py"), *OPERATIONS.glob("*.py")]
    text = "".join(path.read_text() for path in sources)
    settable = {
        name.replace("_", "-") for name in re.findall(r"^    (\w+): ", (sources[0]).read_text(), flags=re.MULTILINE)
    }
    known = settable | set(re.findall(r'"--([a-z-]+)"', text)) | {"help"}
    named = set(re.findall(r"`--([a-z-]+)", page.read_text()))
    assert named <= known
