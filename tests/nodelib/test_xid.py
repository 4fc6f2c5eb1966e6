"""Lines of the NVIDIA driver, as drivers 515 to 610 print them: what is read from each, and what it calls for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodelib.kernel.kmsg import Line
from nodelib.kernel.xid import (
    CALLS_FOR,
    XidEvent,
    advised,
    kind_of,
    read_events,
    sxid_kind,
    table,
    unfinished,
    wanted,
    words,
)
from nodelib.kernel.xid_table import XIDS

NAMELESS = "pid='<unknown>', name=<unknown>, "


def events(*texts: str, first: int = 10) -> list[XidEvent]:
    return list(read_events([Line(number, 1.0, text) for number, text in enumerate(texts, first)]))


def xid(text: str) -> XidEvent:
    [event] = events(f"NVRM: Xid {text}")
    assert event.kind == "xid"
    return event


@pytest.mark.parametrize(
    ("text", "address", "code", "pid"),
    [
        (f"(PCI:0000:05:00): 79, {NAMELESS}GPU has fallen off the bus.", "0000:05:00", 79, ""),
        ("(PCI:0000:2b:00): 79, GPU has fallen off the bus.", "0000:2b:00", 79, ""),
        ("(PCI:0000:09:00): 79, pid=0, GPU has fallen off the bus.", "0000:09:00", 79, ""),
        ("(PCI:0000:b3:00.0): 79, pid=12345, GPU has fallen off the bus.", "0000:b3:00", 79, "12345"),
        ("(0000:3b:00): 13, Graphics Exception", "0000:3b:00", 13, ""),
        ("(PCI:00000000:3B:00.0): 31, pid=2079991, name=pt_main_thread, Ch 00000007", "0000:3b:00", 31, "2079991"),
        ("(PCI:0002:00:00): 13, pid=2519562, name=python3, Graphics Exception: ChID 000c", "0002:00:00", 13, "2519562"),
        ("(PCI:0000:10:1c): 63, pid=1896, Row Remapper: New row marked for remapping", "0000:10:1c", 63, "1896"),
        ("(PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel (0x9).", "0000:01:00", 94, "7194"),
        ("(PCI:0000:01:00 GPU-I:05 GPU-CI:00): 43, pid=7194, name=a, Ch 8", "0000:01:00", 43, "7194"),
        (
            "(PCI:0000:61:00): 45, pid='1496200', name=a b, c, Ch 0a caused by previous Xid 31",
            "0000:61:00",
            45,
            "1496200",
        ),
        ("(PCI:0000:61:00): 62", "0000:61:00", 62, ""),
    ],
)
def test_every_format_names_its_gpu_its_code_and_its_process(text, address, code, pid):
    found = xid(text)
    assert (found.address, found.code, found.pid) == (address, code, pid)


REGISTERS = "NVLink: fatal error detected on link 14({}, 0x0, {}, {}, {}, 0x0, 0x0)"


def nvlink(first="0x0", third="0x0", fourth="0x0", fifth="0x0") -> str:
    return f"(PCI:0003:00:00): 74, {NAMELESS}{REGISTERS.format(first, third, fourth, fifth)}"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("(PCI:0000:05:00): 79, GPU has fallen off the bus.", "B"),
        (f"(PCI:0000:b5:00): 13, {NAMELESS}Graphics SM Warp Exception on (GPC 1, TPC 3, SM 0)", "APP"),
        ("(PCI:0000:b5:00): 31, pid=2079991, name=pt_main_thread, Ch 00000007, intr 00000000. MMU Fault", "APP"),
        ("(PCI:0000:66:00): 32, pid=2280636, name=train.3, Channel ID 0000000d intr0 00040000", "APP"),
        ("(PCI:0000:61:00): 45, pid=1496200, name=distprovers-gpu, Ch 0000000a", "IGN"),
        (f"(PCI:0000:0f:00): 64, {NAMELESS}Row Remapper Error: (0x00000002eebc4100) - All reserved rows", "R"),
        ("(PCI:0000:10:1c): 63, pid=1896, Row Remapper: New row marked for remapping, reset gpu to activate.", "W"),
        ("(PCI:0001:ab:cd): 69, pid=1310987, name=train.3, Class Error: ChId 0008", "APP"),
        ("(PCI:0000:0f:00): 94, pid=2503421, name=python3, Ch 00000008", "W"),
        ("(PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel (0x9). RST: No, D-RST: No", "W"),
        ("(PCI:0000:01:00): 94, pid=7194, Contained: LTC TAG (0x2). RST: No, D-RST: Yes", "W"),
        ("(PCI:0000:01:00): 94, pid=7194, Contained: LTC TAG (0x2). RST: Yes, D-RST: No", "R"),
        ("(PCI:0000:01:00): 94, pid=7194, name=RST: Yes, Ch 00000008", "W"),
        ("(PCI:0000:01:00): 95, pid=7062, Uncontained: LTC TAG (0x2, 0x1). RST: Yes, D-RST: No", "R"),
        ("(PCI:0000:61:00): 119, pid=1346198, name=nvidia-smi, Timeout waiting for RPC from GSP!", "R"),
        ("(PCI:0000:61:00): 119, pid=1, name=a, Timeout after 45s of waiting for RPC response from GPU0 GSP!", "R"),
        (f"(PCI:0000:3b:00): 120, {NAMELESS}GSP Error: Task 1 raised error code 0x5 for reason 0x0", "R"),
        ("(PCI:0018:01:00): 145, pid=922932, name=acctg, RLW_SRC_TRACK Nonfatal XC1 i0 Link 03 (0x040868e2)", "W"),
        ("(PCI:0000:04:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 00 (0x00000006 0x00000001 0x0)", "W"),
        ("(PCI:0000:04:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 00 (0x00000086 0x00000001 0x0)", "R"),
        ("(PCI:0000:04:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 00 (0x00000086 0x00000008 0x0)", "W"),
        ("(PCI:0018:01:00): 145, pid=7, name=a, RLW_RXPIPE Nonfatal XC1 i0 Link 03 (0x040868c2 0x4)", "W"),
        ("(PCI:0018:01:00): 145, pid=7, name=a, RLW_RXPIPE Nonfatal XC1 i0 Link 03 (0x04086cc2 0x4)", "R"),
        ("(PCI:0000:04:00): 145, RLW_TAGSTATE Nonfatal XC0 i0 Link 00 (0x00000088 0x00000001 0x0)", "W"),
        ("(0000:03:00): 14, Channel 00000001", "IGN"),
        ("(PCI:0000:3b:00): 37, pid=7, name=a, unimplemented firmware method", "APP"),
        ("(PCI:0000:3b:00): 60, pid=7, name=a, SEC2", "APP"),
        ("(PCI:0000:3b:00): 107, test", "IGN"),
        ("(PCI:0000:3b:00): 108, pid=7, name=a, fault", "APP"),
        ("(PCI:0000:3b:00): 110, pid=7, name=a, security fault", "P"),
        ("(PCI:0000:3b:00): 152, fault", "W"),
        ("(PCI:0018:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x025525c6 0x00000000)", "R"),
        ("(PCI:0018:01:00): 149, pid=1, name=Nonfatal XC1 i0, NETIR_LINK_EVT Fatal XC0 i0 Link -1 (0x0)", "R"),
        ("(PCI:0000:3b:00): 48, pid=1, An uncorrectable double bit error (DBE) has been detected on GPU", "R"),
        ("(PCI:0000:3b:00): 109, pid=1, name=a, errorString CTX SWITCH TIMEOUT", "W"),
        ("(PCI:0000:3b:00): 54, pid=1, name=a, power", "H"),
        ("(PCI:0000:3b:00): 136, training failed", "R"),
        ("(PCI:0000:3b:00): 26, an unused code", "?"),
        ("(PCI:0000:3b:00): 999, a new code", "?"),
        (nvlink(third="0x10000"), "R"),
        (nvlink(first="0x1"), "W"),
        (nvlink(first="0x100002", fourth="0x30000"), "W"),
        (nvlink(first="0x100002", fourth="0x40000"), "R"),
        (nvlink(first="0x100"), "H"),
        (nvlink(fifth="0x100000"), "W"),
        (nvlink(fifth="0x40000"), "R"),
        (nvlink(), "R"),
        ("(PCI:0003:00:00): 74, NVLink: something else", "R"),
    ],
)
def test_a_line_calls_for_what_its_code_and_its_text_say(text, kind):
    assert kind_of(xid(text)) == kind


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", 4),
        ("GPU recovery action changed from 0x4 (Drain and Reset) to 0x1 (GPU Reset Required)", 1),
        ("GPU recovery action changed from 0x0 (None) to 0x1 (PF FLR)", 1),
        ("GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)", 2),
        ("GPU recovery action changed from 0x2 (Node Reboot Required) to 0x0 (None)", 0),
        ("GPU recovery action changed", None),
    ],
)
def test_154_is_read_by_its_number_because_its_words_differ_from_driver_to_driver(text, number):
    assert wanted(xid(f"(PCI:0009:01:00): 154, {text}")) == number


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("0x4 (Drain and Reset)", "drain and reset"),
        ("0x2 (OS Reboot)", "reboot"),
        ("0x5 (Recover IMEX Domain)", "IMEX recovery"),
        ("0x5 (GPU Reset Bus)", "bus reset"),
        ("0x6 (Bus Reset)", "bus reset"),
        ("0x7 (System Reboot)", "reboot"),
        ("0x5", ""),
        ("0x9 (Something New)", ""),
        ("0x0 (None)", ""),
    ],
)
def test_154_from_5_on_is_read_by_its_words_because_the_number_means_another_thing_to_each_driver(text, action):
    line = f"(PCI:0009:01:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to {text}"
    assert advised(xid(line)) == action


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("(PCI:0000:c3:00.0): 24007, Fatal, Link 28 sourcetrack timeout error (First)", "R"),
        ("(PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)", "W"),
        ("(PCI:0000:05:00.0): 12028, Fatal, Link 32 egress non-posted PRIV error (First)", "W"),
        ("(PCI:0000:00:00.0): 20034, Fatal, Link 30 LTSSM Fault Up", "R"),
        ("(PCI:0000:00:00.0): 23007, Non-fatal, Link 30", "R"),
        ("(PCI:0000:c3:00.0): 12033, Severity 1 Engine instance 00 Sub-engine instance 00", "W"),
        ("(PCI:0000:c3:00.0): 23007, Data {0x00000000}", "W"),
    ],
)
def test_an_nvswitch_line_calls_for_what_its_code_and_its_word_say(text, kind):
    [event] = events(f"nvidia-nvswitch0: SXid {text}")
    assert event.kind == "sxid"
    assert sxid_kind(event) == kind


GONE = (
    "NVRM: The NVIDIA GPU 0000:b3:00.0",
    "NVRM: (PCI ID: 10de:26b5) installed in this system has",
    "NVRM: fallen off the bus and is not responding to commands.",
)


@pytest.mark.parametrize(
    "texts",
    [
        ("NVRM: GPU 0000:b3:00.0: GPU has fallen off the bus.",),
        GONE,
        (GONE[0], "eth0: up", GONE[1], "eth0: down", GONE[2]),
        ("\\x0a".join(GONE),),
    ],
)
def test_a_gpu_that_has_fallen_off_the_bus_without_an_xid_is_found(texts):
    [event] = events(*texts)
    assert (event.kind, event.address) == ("fallen", "0000:b3:00")


def test_a_gpu_that_the_driver_does_not_support_has_not_fallen():
    unsupported = (
        "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1234)",
        "NVRM: installed in this system is not supported",
    )
    assert [event.address for event in events(*unsupported, *GONE)] == ["0000:b3:00"]


@pytest.mark.parametrize(
    ("texts", "begins"),
    [
        (GONE[:1], 10),
        (GONE[:2], 10),
        (GONE, None),
        (("a", "b", *GONE[:2]), 12),
        ((*GONE[:1], *"abcde"), None),
        ((), None),
    ],
)
def test_a_message_of_three_lines_that_the_log_has_only_begun_is_known(texts, begins):
    assert unfinished([Line(number, 1.0, text) for number, text in enumerate(texts, 10)]) == begins


def test_uuid_and_serial_number_are_of_the_gpu_that_the_line_before_names():
    found = events(
        "NVRM: GPU at PCI:0000:48:00: GPU-5fc0bcec-8f0b-4f3c-b5cd-000000000000",
        "NVRM: GPU Board Serial Number: 1563521020414",
        "NVRM: GPU Board Serial Number: 99",
        "NVRM: GPU 0000:b3:00.0: GPU has fallen off the bus.",
        "NVRM: GPU Board Serial Number: 98",
    )
    assert [(event.kind, event.address, event.rest) for event in found] == [
        ("uuid", "0000:48:00", "GPU-5fc0bcec-8f0b-4f3c-b5cd-000000000000"),
        ("serial", "0000:48:00", "1563521020414"),
        ("fallen", "0000:b3:00", ""),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "NVRM: The NVIDIA probe routine failed for 1 device(s).",
        "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x26:0xffff:1290)",
        "NVRM: GPU 0000:3b:00.0: rm_init_adapter failed, device minor number 0",
        "NVRM: API mismatch: the client has the version 535.54.03, but",
        "NVRM: GPU6 _kgspIsHeartbeatTimedOut: Heartbeat timed out, ",
        "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing",
        "[Jul 23 2024 07:53:55] [ERROR] [tid 841] detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id",
        "python3[7]: segfault at 0 in NVRM: Xid (PCI:0000:1c:00): 79, GPU has fallen off the bus.",
        "x\\x0aNVRM: Xid (PCI:0000:1c:00): 79, GPU has fallen off the bus.",
        "pcieport 0000:89:02.0: pciehp: Slot(400): Link Down",
        "EXT4-fs (loop0): mounted filesystem",
        "",
    ],
)
def test_lines_that_other_detectors_look_at_and_lines_that_only_quote_say_nothing_here(text):
    assert events(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "NVRM: Xid : 32, pid=2280636",
        "NVRM: Xid (PCI:0000:66:00): abc, pid=2280636",
        "NVRM: Xid (PCI:0000:66): 79, GPU",
        "NVRM: Xid (PCI:0000:66:00): 79 GPU",
        "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): Fatal",
    ],
)
def test_a_line_about_an_xid_that_cannot_be_read_is_garbled(text):
    assert [event.kind for event in events(text)] == ["garbled"]


def test_every_row_of_the_table_is_whole_and_no_code_has_two():
    codes = [line.split("|")[0].strip() for line in XIDS.strip().splitlines()]
    numbers = [int(code.partition("-")[2] or code) - int(code.partition("-")[0]) + 1 for code in codes]
    assert sum(numbers) == len(table()), "a code that has two rows counts once"
    for code, row in table().items():
        assert row.kind in {"APP", "IGN", "L", "L5", "C", "154", *CALLS_FOR} - {"?"}, code
        assert row.again in {"", *CALLS_FOR} - {"?"}, code
        assert words(code).strip()


def test_the_codes_that_end_a_job_and_nothing_else_start_nothing():
    assert {code for code, row in table().items() if row.kind in ("APP", "IGN")} >= {
        8,
        11,
        13,
        25,
        31,
        32,
        43,
        45,
        68,
        69,
        137,
    }


def test_the_codes_on_which_nvidia_and_other_agents_agree_call_for_a_repair():
    calling = {code for code, row in table().items() if row.kind in ("R", "B", "P", "H", "L", "L5")}
    assert calling >= {
        46,
        48,
        54,
        61,
        62,
        64,
        74,
        79,
        95,
        110,
        119,
        120,
        136,
        140,
        143,
        *range(144, 152),
        155,
        156,
        158,
    }


@given(
    st.text(max_size=60),
    st.sampled_from(["NVRM: ", "NVRM: Xid ", "NVRM: Xid (PCI:0000:1c:00): ", "nvidia-nvswitch0: SXid "]),
)
def test_any_text_is_read_without_an_exception(text, start):
    for event in events(start + text, *GONE[:2]):
        if event.kind == "xid":
            assert kind_of(event) in {"APP", "IGN", "154", *CALLS_FOR}
            assert wanted(event) is None or wanted(event) >= 0
        assert event.pid.isdigit() or event.pid == ""


@given(st.text(alphabet="()PCI:0123456789abcdef. ,", max_size=40))
def test_a_line_about_an_xid_is_never_passed_over(text):
    assert next(event.kind for event in events(f"NVRM: Xid {text}")) in ("xid", "garbled")
