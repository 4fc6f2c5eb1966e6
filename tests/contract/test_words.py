"""One word names one thing: retired words stay out of what users see, and variables come to name the noun they hold."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from remediator.core.reasons import REMEDY, Reason
from remediator.kube import api
from remediator.kube.manifests import crd
from remediator.metrics import REGISTRY

ROOT = Path(__file__).resolve().parents[2]
# Retired word → the word that took its place. CHANGELOG names both, in one row of its list of renamed words.
RETIRED = {
    r"remediator\.dev/eased": "remediator.dev/schedulable-again-at",
    r"closingTold": "closingCommented",
    r"\w+ByPerson": "ByUser",
    r"EvidenceUnclear": "HealthUnknown",
    r"case_moments": "case_events_total",
    r"wakings": "requeues_total",
    r"unclear_nodes": "unknown_nodes",
    r"alerts_heard": "alerts_received",
    r"honou?red yet": "supported yet",
    r"calls? a person": "escalates",
    r"person (is|was) called": "it escalates",
    r"shown,? (but|and)\s+not believed": "ignoring an unhealthy condition",
    r"sees (BAD|GOOD|UNCLEAR)": "health: Unhealthy",
    r"is not believed: ": "is ignored: ",
    r"everything new is stopped": "all new work is paused",
    r"kill-ghost": "kill-orphaned-processes",
    r"\ba ghost\b": "an orphaned process",
    r"TrackerAway": "ChannelUnavailable",
    r"closedBy: Person": "User",
    r"standing: Stands": "state: Active",
    r"stands? behind": "is a cause of",
    r"not heard of": "does not report",
    r"stands? in the way": "blocks",
    r"operation said last": "Last message of the operation",
    r"drains are running already": "enough drains are running",
    r"its node has moved|the case has moved": "has changed",
    r"(?<!about )(?<!of )\b[Nn]odes say\b": "nodes report",
    r"the tracker did not do it": "issue not written",
    r"remediator_told_holds": "remediator_reported_holds",
    r"heardAt": "receivedAt",
    r"result=\"heard\"|by result: heard": 'result="received"',
    r"(?i:\bsick\b)": "unhealthy",
}
GLOBS = ("docs/**/*.md", "docs/*.txt", "deploy/**/*.yaml", "deploy/**/*.toml", "operations/*.yaml")
NAMED = ("README.md", "mkdocs.yml", "pyproject.toml", "remediator_sim/pyproject.toml")
PAGES = sorted([*(ROOT / name for name in NAMED), *(page for glob in GLOBS for page in ROOT.glob(glob))])
SPEAKING = ("remediator", "remediator_sim", "detectors", "operations", "nodelib", "watchdog")


ANY = re.compile("|".join(f"(?:{word})" for word in RETIRED))


def retired(text):
    if not ANY.search(text):
        return []
    return [f"{found[0]!r}: say {better!r}" for word, better in RETIRED.items() if (found := re.search(word, text))]


@cache
def tree(path):
    return ast.parse(path.read_text())


@cache
def messages():
    """Every string that the product can say: docstrings are for developers, but --help shows those of programs."""
    return [(path, node) for folder in SPEAKING for path in ROOT.glob(f"{folder}/**/*.py") for node in strings(path)]


def strings(path):
    nodes = list(ast.walk(tree(path)))
    own = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    if path.parent in (ROOT / "detectors", ROOT / "operations") and isinstance(tree(path).body[0], ast.Expr):
        own.discard(id(tree(path).body[0].value))
    return [
        node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in own
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_and_no_manifest_says_a_retired_word(page):
    assert retired(page.read_text()) == []


def test_the_strings_of_the_product_and_of_the_programs_on_nodes_are_read():
    assert {path.relative_to(ROOT).parts[0] for path, _ in messages()} == set(SPEAKING)


def test_no_message_of_the_product_says_a_retired_word():
    assert [f"{path.name}:{node.lineno} {word}" for path, node in messages() for word in retired(node.value)] == []


def test_no_reason_remedy_metric_or_description_of_a_field_says_a_retired_word():
    reasons = [*(reason.value for reason in Reason), *REMEDY.values()]
    metrics = [metric.name for metric in REGISTRY.collect()]
    assert retired("\n".join([*reasons, *metrics, *crd.render().values()])) == []


def renamed():
    """The rows of CHANGELOG's lists of renamed words, each on one line."""
    changelog = (ROOT / "CHANGELOG.md").read_text()
    lists = re.findall(r"^### Renamed\n(.*?)(?=^##|\Z)", changelog, re.DOTALL | re.MULTILINE)
    return [" ".join(row.split()) for rows in lists for row in re.split(r"^- ", rows, flags=re.MULTILINE)[1:]]


@pytest.mark.parametrize(("word", "better"), RETIRED.items(), ids=RETIRED)
def test_each_retired_word_stands_in_the_changelog_with_the_word_that_took_its_place(word, better):
    assert any(re.search(rf"(?:{word})[^→]*→[^→]*{re.escape(better)}", row) for row in renamed())


@pytest.mark.parametrize("kind", api.KINDS, ids=lambda kind: kind.name)
def test_the_glossary_explains_every_kind(kind):
    assert re.search(rf"^\|[^\n]*\b{kind.name}\b", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)


# Names that carry no noun, and how many of them each folder still has. The numbers only fall: lower them with the code.
NOUNLESS = {"one", "found", "said", "told"}
STILL = {
    "remediator": 0,
    "remediator_sim": 38,
    "nodelib": 16,
    "detectors": 35,
    "operations": 26,
    "deploy": 0,
    "watchdog": 0,
}


def named(folder):
    names = Counter()
    for path in (ROOT / folder).glob("**/*.py"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names[node.id] += 1
            elif isinstance(node, ast.arg):
                names[node.arg] += 1
    return sum(names[name] for name in NOUNLESS)


@pytest.mark.parametrize("folder", STILL)
def test_variables_that_carry_no_noun_only_become_fewer(folder):
    count = named(folder)
    assert count <= STILL[folder], "name the noun that the variable holds: case, node, claim"
    assert count > STILL[folder] - 10, f"they are fewer now: write {count} into STILL"
