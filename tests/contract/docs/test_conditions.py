"""Each Condition has a page, all in one form: how urgent, how to prove it, repaired, RMA, across the fleet."""

import re
import tomllib

import pytest

from remediator.core.runbooks import PAGES, runbook
from remediator.tickets.render.links import parse_link
from tests.contract import conditions
from tests.contract.docs.pages import ROOT, blocks
from tests.contract.docs.test_tables import sections

NAMES = sorted(path.stem for path in conditions.FOLDER.glob("*.md"))
FORM = ["Wait or now", "Prove it", "Repaired", "RMA", "Across the fleet"]


def page(name: str) -> str:
    return (conditions.FOLDER / f"{name}.md").read_text()


def test_every_condition_of_a_detector_the_controller_or_a_shipped_policy_has_a_page_and_nothing_else_has() -> None:
    assert list(conditions.entries()) == NAMES == sorted(PAGES)
    assert conditions.detected() <= set(NAMES)


def test_a_path_that_a_user_is_told_is_that_of_the_page() -> None:
    assert [name for name in NAMES if not (ROOT / runbook(name)).is_file()] == []
    assert runbook("ScratchFull") == runbook("Alert/NodeGpuXid") == ""


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_a_condition_has_the_form_of_all(name: str) -> None:
    text, found = page(name), sections(f"conditions/{name}.md")
    assert text.startswith(f"# {name}\n\n")
    assert list(found) == FORM
    assert f"<!-- drawn: wait or now {name} -->" in found["Wait or now"]
    assert f"<!-- drawn: fleet {name} -->" in found["Across the fleet"]
    assert (f"<!-- drawn: proof {name} -->" in found["Prove it"]) == (name in conditions.detected())
    assert said(text.partition("\n## ")[0].partition("\n\n")[2])
    assert all(said(found[heading]) for heading in FORM[1:])
    assert len(text.splitlines()) <= 75, "who is on call reads one screen"


def said(text: str) -> str:
    """What a person has written in a part of a page: neither drawings nor blocks."""
    return re.sub(r"<!-- drawn.+?<!-- end -->|```.+?```", "", text, flags=re.DOTALL).strip()


@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_whether_a_person_acts_now_or_waits_as_its_policies_do(name: str) -> None:
    """Who is on call reads it where no policy acts, as none does in DryRun."""
    text = said(sections(f"conditions/{name}.md")["Wait or now"])
    (by_hand,) = re.findall(r"^\*\*By hand: (now|it can wait|nothing)\.\*\* ", text)
    modes = {conditions.urgency(entry.spec) for entry in conditions.entries()[name]}
    assert by_hand == "now" or "now" not in modes
    assert by_hand == "it can wait" or modes != {"waits"}


@pytest.mark.parametrize("name", NAMES)
def test_two_commands_prove_a_condition_each_a_line_to_copy(name: str) -> None:
    shown = [block.text for block in blocks(name, sections(f"conditions/{name}.md")["Prove it"])]
    assert [text.count("\n") for text in shown] == [1, 1]
    assert shown[0].startswith(("kubectl ", "remediator "))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_never_or_when_a_replacement_is_claimed_and_what_the_vendor_asks_for(name: str) -> None:
    text = said(sections(f"conditions/{name}.md")["RMA"]).replace("\n", " ")
    if not text.startswith(("Never", "Not yet")):
        assert text.startswith(("When ", "At once"))
        assert re.search(r"The vendor asks for .*(serial number|event log)", text)
        assert "[RMA package](../rma.md)" in text


@pytest.mark.parametrize("name", sorted(conditions.detected()))
def test_a_page_leads_to_what_each_text_of_its_detector_means(name: str) -> None:
    (target,) = re.findall(rf"\[{name}\]\(\.\./(.+?)\.md#", page(name)) or [""]
    assert target.startswith("detectors")


def test_the_link_of_the_page_about_tickets_leads_to_the_page_of_the_condition() -> None:
    routes = (ROOT / "docs/tickets.md").read_text()
    (address,) = re.findall(r"^  runbook: (\S+/\{\{ runbook \}\}\.md)$", routes, flags=re.MULTILINE)
    assert parse_link("runbook", address).address.render({"runbook": "GpuXid"}).endswith(runbook("GpuXid"))


ROWS = tomllib.loads((ROOT / "deploy/npd/detectors.toml").read_text())


def test_the_pages_call_a_condition_as_urgent_as_the_table_of_detectors() -> None:
    table = {row["condition"]: row["when"] for row in ROWS.values() if row["when"] != "none"}
    drawn = {name: [conditions.urgency(entry.spec) for entry in conditions.entries()[name]] for name in table}
    assert drawn == {name: [when] for name, when in table.items()}
