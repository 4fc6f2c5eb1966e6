"""Each alert asks for metrics that there are, and has a page: at risk, where to look, what to do, when it is over."""

import re

import pytest

from nodelib.kernel import xid
from remediator.core.reasons import Reason
from remediator.core.rejections import PODS_REJECTED
from remediator.core.report_conditions import REPORTS
from tests.contract import alerts, conditions
from tests.contract.docs.test_tables import sections
from tests.contract.monitoring import grouped, known_labels, labels, strangers

NAMES = sorted(alerts.rows())
FORM = ["At risk", "Look", "Do", "Over"]


def test_the_files_are_those_of_the_table() -> None:
    made = alerts.generator()["files"]()
    assert [path.name for path, text in made.items() if path.read_text() != text] == [], "make alerts"


def test_every_alert_has_a_page_and_nothing_else_has() -> None:
    assert sorted(path.stem for path in alerts.FOLDER.glob("*.md")) == NAMES


def test_the_address_of_every_runbook_begins_with_the_one_that_the_page_says_to_replace() -> None:
    (command,) = re.findall(r"^sed .*$", (alerts.ROOT / "docs/alerts.md").read_text(), flags=re.MULTILINE)
    replaced = f"{command.split('#')[1]}/"
    urls = [
        line for text in alerts.generator()["files"]().values() for line in text.splitlines() if "runbook_url:" in line
    ]
    assert [line for line in urls if f" {replaced}" not in line] == []
    assert len(urls) == 2 * (len(NAMES) + len(ABOUT_NODES))


@pytest.mark.parametrize("name", NAMES)
def test_an_alert_asks_for_metrics_and_labels_that_there_are(name: str) -> None:
    expr = alerts.rows()[name]["expr"]
    assert strangers(expr) == {}
    assert grouped(expr) <= known_labels(expr)


def test_what_came_of_something_is_a_result_and_why_a_reason_in_every_metric() -> None:
    other = {"outcome", "end", "why", "cause"}
    assert {metric: found for metric, names in labels().items() if (found := names & other)} == {}


@pytest.mark.parametrize("name", NAMES)
def test_a_reason_that_an_alert_names_is_one_of_ours(name: str) -> None:
    held = re.findall(
        r'remediator_(?:oldest_hold_seconds|held_cases)\{reason[=!]~?"(.*?)"', alerts.rows()[name]["expr"]
    )
    assert {word for words in held for word in words.split("|")} <= {reason.value for reason in Reason}


@pytest.mark.parametrize("name", NAMES)
def test_an_alert_is_one_sentence_of_a_known_severity(name: str) -> None:
    row = alerts.rows()[name]
    assert set(row) == {"expr", "for", "severity", "summary"}
    assert row["severity"] in alerts.SEVERITIES
    assert row["summary"].endswith(".")
    assert set(re.findall(r"\$labels\.(\w+)", row["summary"])) <= grouped(row["expr"])


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_an_alert_has_the_form_of_all(name: str) -> None:
    text, found = (alerts.FOLDER / f"{name}.md").read_text(), sections(f"alerts/{name}.md")
    assert text.startswith(f"# {name}\n\n")
    assert f"<!-- drawn: alert {name} -->" in text
    assert list(found) == FORM
    assert all(part.strip() for part in found.values())
    assert re.search(r"```text\n(kubectl|remediator|chronyc|amtool) ", found["Look"])
    assert len(text.splitlines()) <= 45, "who is on call reads one screen"


ABOUT_NODES = alerts.of_nodes()
CAN_WAIT = {"NodeDrift"}  # its ticket is Info, and nobody need come for it


@pytest.mark.parametrize("name", sorted(ABOUT_NODES))
def test_an_alert_about_nodes_is_one_sentence_and_names_a_page_and_whom_it_is_about(name: str) -> None:
    row = ABOUT_NODES[name]
    assert set(row) == {"expr", "for", "severity", "summary", "page"}
    assert row["severity"] in alerts.SEVERITIES
    assert row["summary"].endswith(".")
    kept = grouped(row["expr"])
    assert kept & {"node", "server"}
    assert set(re.findall(r"\$labels\.(\w+)", row["summary"])) <= kept
    assert (alerts.ROOT / "docs" / row["page"]).is_file()


def test_the_alert_on_xids_names_each_that_always_calls_for_a_repair() -> None:
    named = {int(code) for code in re.findall(r"== (\d+)", ABOUT_NODES["GpuXidNeedsRepair"]["expr"])}
    assert named == {code for code, row in xid.table().items() if row.kind in ("R", "B", "H")}


def test_the_alert_on_conditions_names_each_fault_that_detectors_and_the_controller_tell() -> None:
    (named,) = re.findall(r'condition=~"(.*?)"', ABOUT_NODES["NodeConditionTrue"]["expr"])
    told = {*conditions.detected(), *conditions.OF_CONTROLLER, "GpuDeviceTainted"} - REPORTS - CAN_WAIT
    assert PODS_REJECTED in told
    assert set(named.split("|")) == told
