"""What node_versions makes of a node: each kind that is told whole, and nothing of what is cut off or garbage."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detectors.node_versions import TOLD, told_by_nvml
from nodelib.contract.npd import LINE_BYTES, one_line
from nodelib.host.child_process import ChildAnswer
from nodelib.host.versions import KINDS, LONGEST, VersionFiles, line, read, word
from remediator.core.node_versions import MOST_KINDS, versions
from tests.detectors.fixtures.node_versions import information, node, of_gpu, write
from tests.harness.examples import examples

ALL = (*KINDS, *TOLD)


def test_a_kind_that_is_left_out_has_its_reason(tmp_path):
    node(("sys/class/infiniband/mlx5_1/fw_ver", "28."), (of_gpu(1), information("??.??.??.??.??")))(tmp_path)
    facts, why = read(VersionFiles(tmp_path / "proc", tmp_path / "sys"))
    assert why == {"nics": "a device tells '28.'", "vbios": "a device tells '??.??.??.??.??'"}
    assert set(facts) == set(KINDS) - set(why)


def test_a_folder_in_the_place_of_a_file_is_cannot_tell(tmp_path):
    node()(tmp_path)
    (tmp_path / "sys/class/infiniband/mlx5_0/fw_ver").unlink()
    (tmp_path / "sys/class/infiniband/mlx5_0/fw_ver").mkdir()
    facts, why = read(VersionFiles(tmp_path / "proc", tmp_path / "sys"))
    assert ("nics" in facts, why) == (False, {"nics": "a device tells ''"})


@settings(max_examples=examples(60))
@given(content=st.binary(max_size=80), path=st.sampled_from(["proc/sys/kernel/osrelease", of_gpu(0)]))
def test_whatever_a_file_holds_the_line_is_one_that_the_controller_reads(tmp_path_factory, content, path):
    root = tmp_path_factory.mktemp("node")
    node()(root)
    (root / path).write_bytes(content)
    facts, _ = read(VersionFiles(root / "proc", root / "sys"))
    assert dict(versions(line(facts))) == facts


def test_a_value_that_is_too_long_is_a_digest_and_another_value_another_one():
    long = [word([letter * (LONGEST + 1)]) for letter in "ab"]
    assert [len(value) <= LONGEST and value.startswith("digest:") for value in long] == [True, True]
    assert long[0] != long[1]


def test_where_there_is_no_room_for_all_kinds_digests_stand_for_the_longest_and_the_line_is_whole():
    facts = {kind: (kind[:1] * LONGEST) for kind in ALL}
    told = line(facts)
    assert len(told) <= LINE_BYTES
    assert one_line(told) == told
    assert len(versions(told)) == len(ALL) <= MOST_KINDS


@pytest.mark.parametrize(
    "answers",
    [{}, {"init": 9, "done": True}, {"init": 0, "done": True, "count": 1, "gpus": []}, {"init": 0, "count": 0}],
)
def test_an_answer_of_nvml_that_is_not_whole_tells_nothing_and_says_why(answers):
    assert told_by_nvml(ChildAnswer(answers)) == ({}, {"NVML": "not every GPU was asked"})


def test_a_setting_that_one_gpu_does_not_tell_is_left_out():
    def gpu(index, **facts):
        return {"index": index, "error": 0, "address": f"0000:1{index}:00.0", "uuid": "", "facts": facts, "refused": {}}

    limit = {"power limit": {"milliwatts": 700_000}}
    both = [gpu(0, **limit, InfoROM={"versions": ["G520"]}), gpu(1, **limit)]
    facts, why = told_by_nvml(ChildAnswer({"init": 0, "done": True, "count": 2, "gpus": both}))
    assert facts == {"power-limit": "700"}
    assert why["inforom"] == "0000:11:00.0 does not tell its InfoROM"


def test_no_devices_of_a_kind_is_no_trouble(tmp_path):
    write(tmp_path, "proc/sys/kernel/osrelease", "6.8.0\n")
    assert read(VersionFiles(tmp_path / "proc", tmp_path / "sys")) == ({"kernel": "6.8.0"}, {})
