"""What real machines say is read as what it is: healthy, whatever a driver leaves out, renames or calls deprecated."""

import pytest

from nodelib.host.gpus import address_of
from nodelib.nvml.nvidia_smi import SIGNS, SmiGpu, judge
from nodelib.nvml.recovery import meaning
from nodelib.nvml.throttle import counters
from remediator.core import gpus
from tests.nodelib.captures import CAPTURES, DEPRECATED, GB200, RUBIN

EACH = pytest.mark.parametrize("name", CAPTURES)


@EACH
@pytest.mark.parametrize("form", ["{}", "[{}]"], ids=["plain", "in brackets"])
def test_a_healthy_gpu_needs_no_reset_in_the_words_of_its_driver(name: str, form: str) -> None:
    capture = CAPTURES[name]
    told = {query: form.format(text) for query in SIGNS for end, text in capture.words.items() if query.endswith(end)}
    assert len(told) == len(SIGNS)
    for seen in capture.gpus:
        assert judge(SmiGpu(seen.address, seen.uuid), told) == SmiGpu(seen.address, seen.uuid)


@pytest.mark.parametrize("query", SIGNS)
def test_a_question_that_a_driver_calls_deprecated_says_nothing(query: str) -> None:
    healthy = SmiGpu("00000000:06:00.0", "u")
    assert judge(healthy, {query: DEPRECATED}) == judge(healthy, {query: f"[{DEPRECATED}]"}) == healthy


@EACH
def test_the_driver_wants_nothing_and_its_counters_are_asked_where_it_has_them(name: str) -> None:
    capture = CAPTURES[name]
    assert meaning(0, capture.driver) == ""
    assert bool(counters(capture.driver)) is capture.counts


def test_what_the_fifth_action_means_goes_by_the_driver() -> None:
    assert {name: meaning(5, capture.driver) for name, capture in CAPTURES.items()} == {
        "A100-SXM4-40GB": "",
        "Tesla T4": "recover IMEX domain",
        "GB200": "bus reset",
        "Rubin, before its release": "recover IMEX domain",
    }


def test_a_fault_of_one_gpu_of_a_module_is_of_that_gpu_and_its_board_is_that_of_both() -> None:
    first, second, third = CAPTURES[GB200].gpus
    evidence = {"gpus": [seen._asdict() | {"address": address_of(seen.address)} for seen in (first, second, third)]}
    (ill,) = gpus.gpus_of(evidence, "GpuEccFault", f"row remap pending (reset): {address_of(second.address)}")
    assert ill == gpus.Gpu(first.serial, second.uuid)
    assert third.serial not in ill.keys


def test_an_address_of_another_pci_domain_is_read_whole() -> None:
    assert address_of(CAPTURES[RUBIN].gpus[0].address) == "0002:81:00.0"
