"""Tables in the pages say what the tables in the code say."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import remediator.app
import remediator.janitor.metrics  # noqa: F401
from remediator.core.case import Phase
from remediator.core.history import PHASES
from remediator.core.reasons import REMEDY, Reason, reported_after
from remediator.core.table import Table
from remediator.metrics import REGISTRY
from remediator.scheduler.reasons import VerdictReason
from remediator.tickets.reconcile.wanted import NEEDS_USER
from remediator_sim.invariants.table import TEXTS
from remediator_sim.simulation.schedule import KINDS
from tests.contract.docs.pages import PAGES, ROOT
from tests.contract.test_programs import (
    DETECTORS,
    NODELIB,
    OPERATIONS,
    is_privileged,
    modules,
    monitors,
    pod_spec,
    programs,
    templates,
)
from tests.harness import yaml_files

DOCS = ROOT / "docs"


def table(page: str, heading: str) -> list[list[str]]:
    """The rows of the table of a page whose first headings these are, cells without their blanks."""
    text = (DOCS / page).read_text()
    assert text.count(f"| {heading} |") == 1, f"{page} has no single table that begins with {heading}"
    rows = text[text.index(f"| {heading} |") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def bare(cell: str) -> str:
    """A word without its backticks and its link."""
    return re.sub(r"^\[(.+)\]\(.+\)$", r"\1", cell).strip("`")


def sections(page: str) -> dict[str, str]:
    """The text below each heading of a page, by the heading."""
    parts = re.split(r"^## (.+)\n", (DOCS / page).read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def said(*files: Path) -> list[str]:
    """Every text in programs but docstrings, with … for what is filled in."""
    return [text for file in files for text in _said(file)]


@cache
def _said(file: Path) -> tuple[str, ...]:
    return tuple(_texts(ast.parse(file.read_text())))


def _texts(tree: ast.Module) -> Iterator[str]:
    filled = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    pieces = {id(part) for node in filled for part in ast.walk(node) if part is not node}
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in filled:
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (pieces | documents):
            yield re.sub(r"\{\w*\}", "…", node.value)


def unsaid(phrases: list[str], texts: list[str]) -> list[str]:
    """Those of `phrases` that no text has; … in a phrase stands for anything."""
    patterns = {phrase: ".*".join(map(re.escape, phrase.split("…"))) for phrase in phrases}
    return [phrase for phrase, found in patterns.items() if not any(re.search(found, text) for text in texts)]


def test_a_phrase_that_no_program_says_is_found(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text('"""a docstring"""\nWORDS = "is {why}"\nprint(f"disk {1} " "is gone")\n')
    phrases = ["disk … is gone", "is …", "a docstring", "disk is gone"]
    assert unsaid(phrases, said(program)) == ["a docstring", "disk is gone"]


def test_every_reason_that_holds_a_case_is_in_the_page_about_policies_with_its_remedy() -> None:
    rows = {bare(reason): cells for reason, *cells in table("policies.md", "reason | what to do | a person is told")}
    assert rows == {reason.value: [remedy, _told(reason)] for reason, remedy in REMEDY.items()}


def _told(reason: Reason) -> str:
    """When a person is told that this holds a case."""
    time = reported_after(reason)
    if reason in NEEDS_USER or PHASES.get(reason) is Phase.ESCALATED:
        return "at once"
    return f"after {time.total_seconds() / 60:g} min" if time else "never"


def test_every_word_that_the_pages_use_as_a_reason_exists() -> None:
    known = {reason.value for reason in (*Reason, *VerdictReason)}
    rows = [bare(row[0]) for page in ("policies.md", "scheduler.md") for row in rows_of_reasons(page)]
    assert len(rows) > len(REMEDY)
    assert [word for word in rows if word not in known] == []


def rows_of_reasons(page: str) -> list[list[str]]:
    text = (DOCS / page).read_text()
    return [[word] for word in re.findall(r"^\| `([A-Z]\w+)` \|", text, flags=re.MULTILINE)]


def test_the_page_about_the_scheduler_has_every_reason_of_the_extender() -> None:
    assert {row[0] for row in rows_of_reasons("scheduler.md")} == {reason.value for reason in VerdictReason}


def test_the_table_of_detectors_is_that_of_node_problem_detectors_configuration() -> None:
    rows = [(bare(row[0]), bare(row[1]), row[4]) for row in table("detectors.md", "Condition | program")]
    found = [json.loads(path.read_text()) for path in monitors()]
    assert sorted(rows) == sorted(
        (
            one["conditions"][0]["type"],
            f"detectors/{one['rules'][0]['args'][0]}.py",
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


def test_each_condition_leads_to_the_section_that_bears_its_name() -> None:
    links = {
        bare(row[0]): re.findall(r"\(([^#)]*)#(.+)\)", row[0]) for row in table("detectors.md", "Condition | program")
    }
    for condition, found in links.items():
        ((page, anchor),) = found
        (heading,) = [one for one in sections(page or "detectors.md") if one.lower().replace(" ", "-") == anchor]
        assert condition in heading.split()


DETECTOR_PAGES = ("detectors.md", "detectors-gpu.md", "detectors-node.md")
PROGRAM_OF = {
    json.loads(path.read_text())["conditions"][0]["type"]: DETECTORS / f"{rule['args'][0]}.py"
    for path in monitors()
    for rule in json.loads(path.read_text())["rules"]
}


@pytest.mark.parametrize("condition", PROGRAM_OF)
def test_what_the_page_says_of_a_conditions_text_is_what_its_detector_says(condition: str) -> None:
    (text,) = [
        body for page in DETECTOR_PAGES for heading, body in sections(page).items() if condition in heading.split()
    ]
    rows = re.findall(r"^\| (.*?`.+?) \|", text, flags=re.MULTILINE)
    heads = re.findall(r"^\| ([^`|]+) \|.*\n\|-", text, flags=re.MULTILINE)
    phrases = [phrase for row in rows for phrase in re.findall(r"`(.+?)`", row)]
    if set(heads) == {"the text says"}:
        assert unsaid(phrases, said(PROGRAM_OF[condition], *NODELIB.rglob("*.py"))) == []
    else:
        assert heads[0] in ("fault in the text", "statvfs of the mount", "the kernel waits in", "sign")


@pytest.mark.slow
def test_what_is_to_be_declared_is_an_option_of_each_program_that_is_named() -> None:
    for _, options, names in table("detectors.md", "declare | with"):
        for name in re.findall(r"`(\w+)`", names):
            command = [sys.executable, str(DETECTORS / f"{name}.py"), "--help"]
            told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            assert [option for option in re.findall(r"`(--[a-z-]+)`", options) if f"{option} " not in told] == [], name


def test_the_row_of_a_detector_of_ones_own_has_what_every_row_has() -> None:
    block = re.search(r"^```text\n(\[.+?)^```$", sections("detectors.md")["Your own"], flags=re.MULTILINE | re.DOTALL)
    assert block
    ((name, row),) = tomllib.loads(block[1]).items()
    shipped = tomllib.loads((ROOT / "deploy/npd/detectors.toml").read_text())
    assert name not in shipped
    for one in shipped.values():
        one.pop("speaks", None)  # only of one that a user would not write
        assert {key: type(value) for key, value in row.items()} == {key: type(value) for key, value in one.items()}


def of_detector(expression: str) -> Any:
    """The value of an expression where the detectors are, in a process of its own: their modules have common names."""
    code = f"import json, gpu_ecc, nfs_mount; print(json.dumps({expression}))"
    done = subprocess.run([sys.executable, "-B", "-c", code], cwd=DETECTORS, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_memory_faults_are_those_that_the_detector_knows_in_its_order() -> None:
    known = of_detector("[[f'{sign.words} ({sign.remedy})', sign.remedy] for sign in gpu_ecc.FAULTS]")
    rows = table("detectors-gpu.md", "fault in the text")
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
    rows = table("detectors-node.md", "statvfs of the mount")
    cases = [
        (STATFS[mount], server, moved, SAYS[re.split("[:,]", says)[0]])
        for mount, servers, counters, says in rows
        for server in SERVER[servers]
        for moved in ([MOVED[counters]] if counters else MOVED.values())
    ]
    sights = [case[:3] for case in cases]
    made = of_detector(f"[int(nfs_mount.decide(nfs_mount.MountState(s, '', a, m))[0]) for s, a, m in {sights!r}]")
    assert made == [case[3] for case in cases]
    every = {(statfs, server, moved) for statfs in STATFS.values() for server in SERVER[""] for moved in MOVED.values()}
    assert set(sights) == every


def level(spec: dict[str, Any]) -> str:
    """The strictest level of Pod Security that a Pod keeps, as far as our templates go."""
    return "privileged" if is_privileged(spec) else "restricted"


def test_the_table_of_operations_is_that_of_their_templates() -> None:
    rows = {bare(row[0]): row for row in table("operations.md", "template | does")}
    specs = {yaml_files.read(path)["metadata"]["name"]: path for path in templates()}
    assert set(rows) == set(specs)
    for name, path in specs.items():
        _, _, where, rights, pod_security = rows[name]
        spec, template = pod_spec(path), yaml_files.read(path)["spec"]
        assert where == {"Target": "on the node", "Elsewhere": "on another node"}[template["runOn"]]
        assert ("no API token" in rights) is not spec["automountServiceAccountToken"]
        assert ("host PID" in rights) is bool(spec.get("hostPID"))
        assert ("network" in rights) is bool(spec.get("hostNetwork"))
        assert ("privileged," in rights) is is_privileged(spec)
        assert pod_security == level(spec)


def test_the_operations_that_are_said_to_drain_first_or_to_run_once_in_a_boot_do() -> None:
    text = (DOCS / "operations.md").read_text().replace("\n", " ")
    specs = [yaml_files.read(path) for path in templates()]
    draining = {one["metadata"]["name"] for one in specs if one["spec"]["drain"]["strategy"] != "None"}
    once = {path.stem.replace("_", "-") for path in programs(OPERATIONS) if "require_fresh(" in path.read_text()}
    said_to_drain = text.partition("whose template asks for it:")[2].partition(" do.")[0]
    said_once = text.partition("disturb the node from within (")[2].partition(")")[0]
    assert set(re.findall(r"`([a-z-]+)`", said_to_drain)) == draining
    assert set(re.findall(r"`([a-z-]+)`", said_once)) == once


@pytest.mark.parametrize("path", programs(OPERATIONS), ids=lambda path: path.stem)
def test_what_an_operation_says_and_takes_is_what_its_page_says(path: Path) -> None:
    section = sections("operations.md")[path.stem.replace("_", "-")]
    rows = re.findall(r"^\| (.*?`.+?) \|", section, flags=re.MULTILINE)
    exits = re.findall(r"^Exit [012].*?(?=\n\n|\Z)", section, flags=re.MULTILINE | re.DOTALL)
    spoken = [phrase for text in (*rows, *exits) for phrase in re.findall(r"`([^`]{5,})`", text.replace("\n", " "))]
    sources = [path, *neighbours(path)]
    assert unsaid(spoken, said(*sources)) == []
    shared = {name for source in sources[1:] for name in taken(source)}
    explained = {name for name in shared if name in str(ast.get_docstring(ast.parse(path.read_text())))}
    assert taken_in_page(section) == {*taken(path), *explained}


@cache
def neighbours(path: Path) -> set[Path]:
    """The modules of nodelib that a program is made of."""
    own = {file for name in modules(path) if (file := ROOT / f"{name.replace('.', '/')}.py").exists()}
    return own.union(*(neighbours(file) for file in own))


def taken(path: Path) -> list[str]:
    """The PARAMETERS that a module reads; who the case is, the controller fills in, and all that a drain takes."""
    return re.findall(r'\b(?:(?:number|flag|text|words)\([\w.]+, |given\.get\()"(\w+)"', path.read_text())


def taken_in_page(section: str) -> set[str]:
    """The PARAMETERS that a section tells of."""
    found = re.search(r"^PARAMETERS: (.+?)\n\n", section, flags=re.MULTILINE | re.DOTALL)
    told = re.sub(r"\([^()]*\)", "", found[1]) if found else ""
    return {word for word in re.findall(r"`(\w+)`", told) if word[0].islower()}


def test_every_metric_stands_in_the_page_with_its_type_and_what_it_says() -> None:
    metrics = [(metric, "_total" if metric.type == "counter" else "") for metric in REGISTRY.collect()]
    expected = [[f"`{metric.name}{total}`", metric.type, metric.documentation] for metric, total in metrics]
    assert table("metrics.md", "metric") == sorted(expected)


def test_the_thirteen_promises_are_told_and_each_names_tests_that_are_there() -> None:
    rows = table("safety.md", "# | promise")
    assert [row[0] for row in rows] == list(TEXTS)
    for row in rows:
        paths = re.findall(r"`(tests/[^`]+)`", row[3])
        assert paths
        assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_page_about_the_simulation_has_every_kind_of_step_that_has_no_cards() -> None:
    rows = {bare(name): text for name, text in table("simulation.md", "kind of step | how many")}
    assert rows == {kind.name: kind.each for kind in KINDS.values() if kind.each}


def test_each_kind_of_step_has_a_weight_or_comes_with_a_part() -> None:
    assert [kind.name for kind in KINDS.values() if bool(kind.weight) + bool(kind.each) != 1] == []


OPTIONS_OF_HELM = {"take-ownership", "post-renderer"}


@cache
def options() -> frozenset[str]:
    """Every option of a program of ours, and of Helm those that pages name."""
    on_nodes = [path for folder in (DETECTORS, OPERATIONS, NODELIB) for path in folder.rglob("*.py")]
    commands = "".join(path.read_text() for path in sorted((ROOT / "remediator" / "cli").glob("*.py")))
    text = commands + "".join(path.read_text() for path in on_nodes)
    settable = {name.replace("_", "-") for name in re.findall(r"^    (\w+): ", commands, flags=re.MULTILINE)}
    return frozenset({*settable, *re.findall(r'["/]--([a-z0-9-]+)"', text), "help", *OPTIONS_OF_HELM})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_option_that_a_page_names_belongs_to_a_program_of_ours_or_is_helms(page: Path) -> None:
    assert set(re.findall(r"`--([a-z0-9-]+)", page.read_text())) <= options()


def decision_tables() -> Iterator[tuple[str, Table[Any]]]:
    """Every decision table of the product, with its name; of a mapping of tables each one."""
    for path in sorted((ROOT / "remediator").rglob("*.py")):
        if not re.search(r"\bTable\(\n", path.read_text()):
            continue
        module = import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for name, value in vars(module).items():
            members = value.items() if isinstance(value, Mapping) else [("", value)]
            yield from ((f"{path.stem}.{name}{key}", each) for key, each in members if isinstance(each, Table))


def test_a_page_shows_why_each_row_of_every_decision_table_stands_where_it_stands() -> None:
    pages, tables = "\n".join(page.read_text() for page in PAGES), dict(decision_tables())
    missing = {name: [row.why for row in table.rows if f"| {row.why} |" not in pages] for name, table in tables.items()}
    assert len({id(table) for table in tables.values()}) > 14
    assert {name: reasons for name, reasons in missing.items() if reasons} == {}
