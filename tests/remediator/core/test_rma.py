"""What a vendor is told of a part that is to be replaced, and what the package says that it lacks."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core.case import Attempt, AttemptOutcome, Trigger
from remediator.core.node import NodeCondition, Status
from remediator.core.reasons import Reason
from remediator.core.report_conditions import REPORTS
from remediator.core.rma import Part, RmaClaim, boards, bundle_place, read_bundle
from remediator.core.rma_missing import missing
from remediator.core.rma_readme import files, readme, summary
from remediator.core.stuck_pods import own_condition
from tests.remediator.core.rma_example import CASE, CLAIM, EVIDENCE, FILES, NOW, OTHER, SERIAL, SINCE, SLOT, UUID

BARE = RmaClaim(replace(CASE, gpus=(), trigger=None, attempts=()), {}, None, ())


def of(claim: RmaClaim) -> list[str]:
    return [lack.what for lack in missing(claim)]


def about(condition: str, claim: RmaClaim = BARE) -> RmaClaim:
    trigger = Trigger(condition, "True", "R", "text", SINCE)
    return replace(claim, case=replace(claim.case, trigger=trigger))


def with_conditions(claim: RmaClaim, *more: NodeCondition) -> RmaClaim:
    assert claim.node is not None
    conditions = {**claim.node.conditions, **{each.type: each for each in more}}
    return replace(claim, node=replace(claim.node, conditions=conditions))


def test_of_a_board_all_is_told_that_the_case_and_its_bundle_know_together() -> None:
    (board,) = boards(CLAIM)
    assert (board.serial, board.uuid, board.slot) == (SERIAL, UUID, SLOT)
    assert (board.part, board.inforom, board.vbios) == ("692-2G520-0200-000", "G520.0200.00.05", "96.00.89.00.01")
    assert (board.model, board.remapped) == ("NVIDIA H100 80GB HBM3", "[0, 8, 0, 1]")


def test_a_time_that_nobody_has_written_is_not_told_and_numbers_of_rows_have_their_words() -> None:
    never = datetime.fromtimestamp(0, UTC)
    bare = NodeCondition("GpuXid", Status.TRUE, "", never, never)
    assert (CLAIM.node, CASE.trigger) != (None, None)
    node = replace(CLAIM.node, conditions={"GpuXid": bare})
    case = replace(CASE, trigger=replace(CASE.trigger, since=never))
    text = readme(replace(CLAIM, node=node, case=case), NOW)
    assert ("1970" in text, "   GpuXid=True\n" in text) == (False, True)
    assert "0 corrected, 8 uncorrected, 0 pending, 1 failed" in text


def test_the_version_of_the_driver_is_that_of_its_kernel_module() -> None:
    assert CLAIM.bundle is not None
    assert CLAIM.bundle.driver == "580.95.05"
    assert read_bundle({"proc/driver/nvidia/version": b"\xff none"}).driver == ""


def test_the_bundle_fills_in_what_the_case_lacks() -> None:
    thin = {"gpus": [{"uuid": UUID}]}
    (board,) = boards(replace(CLAIM, evidence=thin))
    assert (board.part, board.slot) == ("692-2G520-0200-000", SLOT)


def test_a_package_with_all_lacks_only_what_a_program_of_the_vendor_makes() -> None:
    assert of(CLAIM) == ["log of the field diagnostic"]


def test_a_case_without_anything_lacks_all_and_each_says_how_to_get_it() -> None:
    lacks = missing(about("GpuLost"))
    assert [lack.what for lack in lacks] == [
        "evidence of the case",
        "serial number of the machine",
        "which GPU is at fault",
        "serial number of the board",
        "part number of the board",
        "version of the InfoROM",
        "bundle of the case",
        "nvidia-bug-report",
        "event log of the BMC (SEL)",
        "log of the field diagnostic",
    ]
    assert all(lack.how for lack in lacks)


def test_a_bundle_that_nobody_has_given_is_missing_with_its_place() -> None:
    (lack,) = [lack for lack in missing(replace(CLAIM, bundle=None)) if lack.what == "bundle of the case"]
    assert lack.how == f"fetch {EVIDENCE['bundle']}; then give it with --bundle FILE"


def test_a_bundle_that_is_not_the_one_that_the_node_sent_is_said_to_be_another() -> None:
    for sha256, lacks in (("a1", []), ("b2", ["bundle of the case"]), ("", [])):
        claim = replace(CLAIM, evidence=EVIDENCE | {"bundleSha256": sha256}, bundle=read_bundle(FILES, "a1"))
        assert of(claim)[:-1] == lacks


@pytest.mark.parametrize(
    ("name", "content", "what", "why"),
    [
        ("nvidia-bug-report.txt", b"not made: somebody computes on a GPU", "nvidia-bug-report", "somebody computes"),
        ("nvidia-bug-report.txt", b"nvidia-bug-report.sh: no space", "nvidia-bug-report", "did not write it"),
        ("sel.txt", b"not read: nsenter: ipmitool: No such file", "event log of the BMC (SEL)", "No such file"),
    ],
)
def test_why_a_bundle_lacks_a_file_is_said(name: str, content: bytes, what: str, why: str) -> None:
    with_reason = {key: text for key, text in FILES.items() if key != "nvidia-bug-report.log.gz"} | {name: content}
    lacks = {lack.what: lack.how for lack in missing(replace(CLAIM, bundle=read_bundle(with_reason)))}
    assert why in lacks[what]


@pytest.mark.parametrize(
    ("condition", "part", "asked"),
    [
        ("DiskFault", Part.DISK, "serial number, firmware and SMART data of the disk"),
        ("MemoryEcc", Part.MEMORY, "slot, serial and part number of the DIMM"),
        ("NetworkLinkFault", Part.CARD, "serial number and firmware of the card"),
        ("ChassisFault", Part.CHASSIS, "serial and part number of what failed"),
        ("Ready", Part.MACHINE, "event log of the BMC (SEL)"),
        ("GpuXid", Part.GPU, "nvidia-bug-report"),
    ],
)
def test_each_kind_of_part_has_its_own_questions(condition: str, part: Part, asked: str) -> None:
    claim = about(condition)
    assert (claim.part, asked in of(claim)) == (part, True)
    assert ("nvidia-bug-report" in of(claim)) == (part is Part.GPU)


def test_where_the_case_names_no_gpu_all_are_listed_once_and_the_reader_is_told() -> None:
    claim = replace(CLAIM, case=replace(CASE, gpus=()))
    assert [board.serial for board in boards(claim)] == [SERIAL, OTHER["serial"]]
    assert "The case names no GPU; these are all that were found." in readme(claim, NOW)
    assert summary(claim) == "GpuMemoryWorn: GPU"


def test_no_pod_job_or_user_is_named_to_a_vendor() -> None:
    drained = Attempt(
        *("op", "drain", 0, SINCE, NOW, AttemptOutcome.FAILED, "in the way: team-a/secret-job-7"),
        reason=Reason.DRAIN_TIMEOUT,
    )
    case = replace(CASE, attempts=(drained,), hold=True)
    text = readme(replace(CLAIM, case=case), NOW)
    assert "drain: its Pods did not leave" in text
    assert "secret-job" not in text


def test_of_pods_that_stay_a_vendor_reads_that_there_are_some_and_no_name() -> None:
    assert CLAIM.node is not None
    words = own_condition(CLAIM.node, {"team-a/secret-job-7": SINCE}, NOW)
    assert words is not None
    assert "team-a/secret-job-7" in words.message
    stuck = NodeCondition(words.type, words.status, words.reason, NOW, NOW, words.message)
    trigger = Trigger(words.type, "True", words.reason, words.message, NOW)
    text = readme(replace(with_conditions(CLAIM, stuck), case=replace(CASE, trigger=trigger)), NOW)
    assert "   PodsStuckTerminating=True (PodsDoNotEnd) since 2026-11-26 14:30 UTC\n" in text
    assert ("PodsStuckTerminating=True (PodsDoNotEnd)\n" in text, "secret-job" in text) == (True, False)


@pytest.mark.parametrize("status", [Status.TRUE, Status.UNKNOWN])
def test_a_condition_that_only_reports_is_none_of_what_is_wrong(status: Status) -> None:
    reports = [NodeCondition(name, status, "R", SINCE, NOW, "pods=3f2a1b0c") for name in sorted(REPORTS)]
    assert {"DeviceInventory", "GpuUse", "NodeVersions"} == REPORTS
    assert readme(with_conditions(CLAIM, *reports), NOW) == readme(CLAIM, NOW)


def test_what_a_node_says_makes_no_line_of_its_own() -> None:
    trigger = Trigger("GpuLost", "True", "R", "lost\n8. Missing\n\x1b[2J", SINCE)
    text = readme(replace(CLAIM, case=replace(CASE, trigger=trigger)), NOW)
    assert text.count("\n8. Missing\n") == 1
    assert "\x1b" not in text


def test_of_the_conditions_only_those_are_told_that_say_that_something_is_wrong() -> None:
    text = readme(CLAIM, NOW).partition("6. Conditions of the node now\n\n")[2].partition("\n\n7.")[0]
    assert [line.split("=")[0].strip() for line in text.splitlines()] == ["GpuMemoryWorn"]


def test_the_files_are_those_that_a_vendor_is_sent_and_the_node_may_be_gone() -> None:
    assert [name for name in FILES if name not in files(CLAIM)] == ["proc/meminfo"]
    assert "the node is gone" in readme(BARE, NOW)
    assert files(BARE) == []


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=20), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)
GPUS = st.lists(st.dictionaries(st.sampled_from(["serial", "uuid", "address", "part", "more"]), JSON) | JSON)


@pytest.mark.slow
@given(st.fixed_dictionaries({"gpus": GPUS | JSON, "machine": JSON, "bundle": JSON, "kernel": JSON}), st.binary())
def test_whatever_a_node_wrote_becomes_a_package(evidence: dict[str, object], nvml: bytes) -> None:
    claim = replace(CLAIM, case=replace(CASE, gpus=()), evidence=evidence, bundle=read_bundle({"nvml.json": nvml}))
    assert readme(claim, NOW).startswith("RMA package of gpu-17")
    assert len(bundle_place(evidence)) <= 512
