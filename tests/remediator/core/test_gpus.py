"""Which GPUs a case is about: those of the evidence that its condition names, and no others."""

import pytest

from remediator.core.gpus import MOST, Gpu, gpus_of

FIRST = {"address": "0000:3b:00.0", "uuid": "GPU-9f3c01ab-77aa-1234-5678-0123456789ab", "serial": "1563521020414"}
SECOND = {"address": "0000:5e:00.0", "uuid": "GPU-11d2c4a0-77aa-1234-5678-0123456789ab", "serial": "1563521020999"}
TWIN = SECOND | {"serial": FIRST["serial"]}  # the other GPU of a superchip
EVIDENCE = {"bootID": "b", "gpus": [FIRST, SECOND], "kernelLines": ["NVRM: Xid"]}
SILENT = "NVML at GPU index 1: GPU is lost (code 15)"  # what gpu_lost says of it


def named_gpus(evidence, message):
    return gpus_of(evidence, "GpuLost", message)


def gpu(entry: dict[str, str]) -> Gpu:
    return Gpu(entry["serial"], entry["uuid"])


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("GPU 0000:3b:00.0 (GPU-9f3c01ab) fell off the bus", [FIRST]),
        ("Xid 79 of 0000:5e:00", [SECOND]),
        ("board 1563521020999 is hot", [SECOND]),
        ("0000:3b:00.0 and 0000:5e:00.0 are lost", []),  # all that it has: the fault is the node's
        ("the kubelet does not answer", []),
        ("", []),
    ],
)
def test_the_gpus_that_the_message_names(message, expected):
    assert named_gpus(EVIDENCE, message) == tuple(gpu(entry) for entry in expected)


def test_two_gpus_of_one_board_have_its_serial_and_each_its_uuid():
    named = named_gpus({"gpus": [FIRST, TWIN]}, "0000:5e:00.0 is lost")
    assert named == (Gpu("1563521020414", TWIN["uuid"]),)
    assert named[0].keys == ("1563521020414", TWIN["uuid"])
    assert str(named[0]) == "board 1563521020414 (GPU-11d2c4a0)"


def test_a_message_that_names_nobody_is_about_the_gpus_that_the_detector_of_the_condition_has_kept():
    kept = [{"condition": "GpuLost", "lost": [SECOND]}, {"condition": "GpuEccFault", "gpus": [FIRST]}]
    assert named_gpus(EVIDENCE | {"detectors": kept}, SILENT) == (gpu(SECOND),)
    assert gpus_of(EVIDENCE | {"detectors": kept}, "GpuXid", SILENT) == ()


def test_what_programs_tell_of_one_address_is_put_together():
    """gpu_xid has the serial number from the kernel's log, the driver the UUID; only one of them tells the function."""
    kept = {"condition": "GpuXid", "gpus": [{"address": "0000:3b:00", "uuid": "", "serial": FIRST["serial"]}]}
    driver = {"address": "0000:3b:00.0", "uuid": FIRST["uuid"]}
    assert gpus_of({"detectors": [kept], "gpus": [driver, SECOND]}, "GpuXid", "Xid 79") == (gpu(FIRST),)


def test_a_fault_that_all_gpus_of_a_node_show_is_the_nodes():
    kept = {"condition": "GpuLost", "lost": [FIRST, SECOND]}
    assert named_gpus(EVIDENCE | {"detectors": [kept]}, "NVML does not answer") == ()
    assert named_gpus({"detectors": [kept | {"lost": [FIRST]}]}, "NVML does not answer") == (gpu(FIRST),), (
        "its only one"
    )


def test_a_gpu_that_nvml_does_not_list_any_more_is_known_by_what_its_detector_has_kept():
    kept = {"condition": "GpuLost", "gpus": [FIRST]}
    evidence = {"detectors": [kept], "gpus": [{"address": "0000:3b:00.0", "fallen": True}, SECOND]}
    assert named_gpus(evidence, "0000:3b:00.0 (GPU-9f3c01ab) is lost") == (gpu(FIRST),)


@pytest.mark.parametrize("serial", ["", "N/A", "0", "0000000000000", "[Unknown]", 7, None, "x" * 97])
def test_what_many_boards_say_is_no_serial_number(serial):
    named = named_gpus({"gpus": [FIRST | {"serial": serial}]}, "0000:3b:00.0 is lost")
    assert named == (Gpu("", FIRST["uuid"]),)


@pytest.mark.parametrize(
    "evidence",
    [None, {}, {"gpus": "none"}, {"gpus": [7, None, {"uuid": ["x"], "serial": {}}]}, {"gpus": {"uuid": "GPU-short"}}],
)
def test_evidence_that_is_odd_names_nobody(evidence):
    assert named_gpus(evidence, "0000:3b:00.0 GPU-short is lost") == ()


def test_a_message_that_names_more_gpus_than_a_node_has_counts_for_some():
    many = [{"address": f"0000:{number:02x}:00.0", "uuid": f"GPU-{number:08x}-77aa"} for number in range(40)]
    assert len(named_gpus({"gpus": many}, " ".join(entry["address"] for entry in many[1:]))) == MOST


@pytest.mark.parametrize(
    ("message", "boards"),
    [
        ("few spare rows left: 0000:3b:00.0 (GPU-9f3c01ab, serial 1563521020414)", ["1563521020414"]),
        ("few spare rows left: 0000:3b:00.0 (GPU-9f3c01ab)", []),
        ("few spare rows left: 0000:3b:00.0 (GPU-9f3c01ab, serial 00000000)", []),
        ("ssh serial 1563521020414", []),
    ],
)
def test_without_evidence_the_boards_are_those_whose_serial_numbers_the_message_has(message, boards):
    assert gpus_of(None, "GpuMemoryWarning", message) == tuple(map(Gpu, boards))
    assert named_gpus(EVIDENCE, message) != tuple(map(Gpu, boards)) or not boards, "evidence knows the UUID, too"
