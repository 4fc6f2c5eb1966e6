"""`make demo`, from the first fault to the summary."""

import re
import signal
import ssl
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from remediator_sim.scenarios.__main__ import READER, main
from remediator_sim.scenarios.scenarios import FEWEST
from tests.remediator_sim.scenarios.running import PARTS, PLAYED, ROOT, Ended, end, left_over, played, start

ENDS = {
    "lost-gpu": "Recovered",
    "ecc-fault": "Recovered",
    "unkillable-process": "Recovered",
    "stuck-mount": "Recovered",
    "blocked-drain": "Recovered",
    "returning-fault": "Escalated",
    "dead-nfs-server": "Recovered",
    "controller-crash": "Resumed",
}
REBOOTED = {"lost-gpu", "blocked-drain", "unkillable-process", "returning-fault"}
WITH_ISSUE, WITH_CLOSED_ISSUE = {"returning-fault", "dead-nfs-server"}, {"dead-nfs-server"}
FAULTS = set(PLAYED.faults)
pytestmark = pytest.mark.timeout(600)
whole = pytest.mark.skipif(not PLAYED.whole, reason="looks at the whole demo, which is played with CI=1")


def test_nothing_went_otherwise_than_it_should_and_that_is_exit_0(demo: Ended) -> None:
    assert (demo.summary["wrong"], demo.code) == ([], 0), demo.text[-4000:]


def test_every_fault_ends_as_its_scenario_says(demo: Ended) -> None:
    ends = {fault["name"]: fault["outcome"] for fault in demo.summary["faults"]}
    assert ends == {name: end for name, end in ENDS.items() if PLAYED.whole or name in FAULTS}


def test_a_node_is_rebooted_only_where_nothing_milder_helps(demo: Ended) -> None:
    assert demo.summary["reboots"] == len(FAULTS & REBOOTED)
    assert demo.summary["evictions"] >= (5 if PLAYED.whole else len(FAULTS))


def test_one_issue_is_opened_for_the_node_that_stays_out_and_one_for_the_file_server_which_is_closed(
    demo: Ended,
) -> None:
    opened, closed = len(FAULTS & WITH_ISSUE), len(FAULTS & WITH_CLOSED_ISSUE)
    assert demo.summary["tickets"] == {"opened": opened, "closed": closed}


@whole
def test_every_invariant_was_put_to_the_test_and_held(demo: Ended) -> None:
    invariants = demo.summary["invariants"]
    assert [name for name, result in invariants.items() if not result["checks"] or "broken" in result] == []
    assert set(invariants) == {f"I{number}" for number in (*range(1, 11), 12)}


def test_each_issue_is_reported_with_its_title_and_the_link_to_its_page(demo: Ended) -> None:
    issues = demo.summary["issues"]
    returning = ["returning-fault"] if "returning-fault" in FAULTS else []
    assert [issue["open"] for issue in issues if "gpu-c1: " in issue["title"]] == [True for _ in returning]
    for issue in issues:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/example/gpu-cluster/issues/\d+", issue["link"])
        assert f'IssueOpened          "{issue["title"]}" {issue["link"]}' in demo.text


@whole
def test_a_cause_that_nodes_share_is_one_line_and_not_one_for_each_node(demo: Ended) -> None:
    (line,) = [line for line in demo.text.splitlines() if " SharedCause " in line]
    assert "9 nodes report NfsUnavailable: one cause, and no node is touched" in line


@whole
def test_pods_are_placed_where_they_would_not_be_without_remediator(demo: Ended) -> None:
    kept_off = [placement for placement in demo.summary["placements"] if placement["fault"]]
    assert kept_off
    assert all(placement["node"] != placement["without"] for placement in kept_off)
    first = kept_off[0]
    text = f"on {first['node']}; without Remediator it would be on {first['without']}, where {first['fault']} is True"
    assert text in demo.text


def test_pods_of_one_one_and_two_gpus_all_run_on_two_nodes_of_two(demo: Ended) -> None:
    first, second, third = demo.summary["packing"]["placed"]
    assert (first, {first, third}) == (second, {"pack-1", "pack-2"})
    assert demo.summary["packing"]["alone"][-1] == "", "spread, the last one waits"


def test_no_line_reports_a_fault_that_is_none_and_no_cell_is_cut_off(demo: Ended) -> None:
    reasons = re.findall(r"^ *[\d.]+ s  (\S+) +(\w+)", demo.text, re.MULTILINE)
    assert {reason for _, reason in reasons} & {"OperationRefused", "DiagnosisFailed", "VerifyTimeout"} == set()
    assert {node for node, reason in reasons if reason == "OperationFailed"} <= {"gpu-c1"}, "its fault returns"
    assert "…" not in demo.text


@whole
def test_readme_shows_the_tables_that_are_printed(demo: Ended) -> None:
    (shown,) = re.findall(r"```text\n(fault  .*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = {same_in_every_run(line) for line in demo.text.splitlines()}
    rows = [line for line in map(same_in_every_run, shown.splitlines()) if not re.match(r"train-\S+ ", line)]
    assert [row for row in rows if row not in lines] == []
    assert len(rows) > 20


def same_in_every_run(line: str) -> str:
    """A line without numbers that stand alone, and with single blanks."""
    return " ".join(re.sub(r"(?<![\w-])\d+(\.\d+)?(?![\w-])", "N", line).split())


def test_nothing_is_left_running(demo: Ended) -> None:
    assert demo.left == []


@pytest.mark.slow
def test_ctrl_c_ends_it_in_the_middle_with_nothing_left_running(tmp_path: Path) -> None:
    process = start(tmp_path, "--summary", "json", "--only", "lost-gpu", "--nodes", "3")
    assert process.stderr
    page = ""
    for line in process.stderr:
        page = page or (re.match(r"page (https://127\.0\.0\.1:\d+/) ", line) or ("", ""))[1]
        if "Claimed" in line:
            break
    signed_in = Request(page, headers={"Authorization": f"Bearer {READER}"})
    with urlopen(signed_in, timeout=60, context=ssl._create_unverified_context()) as answer:
        assert "gpu-a1" in answer.read().decode(), "the page is there while the demo runs"
    assert list(tmp_path.iterdir()) != []
    process.send_signal(signal.SIGINT)
    ended = end(process, 120)
    assert ended.code == 130
    assert "nothing is left running" in ended.text
    assert "Traceback" not in ended.text
    assert ended.output == "", "an interrupted demo has no summary"
    assert left_over(process.pid) == []
    assert list(tmp_path.iterdir()) == []


def test_the_parts_are_what_a_small_fleet_plays_and_some_runs_in_a_row_play_each():
    assert sorted([*PARTS, "dead-nfs-server"]) == sorted(FEWEST) == sorted({*ENDS} - {"controller-crash"})
    assert {played(number).faults for number in range(7, 7 + len(PARTS))} == {(fault,) for fault in PARTS}


def test_too_small_a_fleet_is_refused_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--nodes", "3"])
    assert ended.value.code == 2
    assert "--nodes: the demo needs 24 GPU nodes or more, not 3" in capsys.readouterr().err
