"""What a node is known to have, and what it lacks, by numbers."""

from dataclasses import replace

import pytest

from remediator.core.device_count import DEVICES_MISSING, KINDS, DeviceCount, counted
from remediator.core.gpu_label import gpu_label
from remediator.core.idle_result import IdleResult
from remediator.core.names import GPU_PRESENT
from remediator.core.node import Status
from remediator.core.node_inventory import (
    Inventory,
    fresh,
    lacking,
    learn,
    new_to_case,
    of_machine,
    own_condition,
    phrase,
    should_have,
    unread,
)
from tests.builders import a_node, at, condition, pool

COUNT = "gpus=8 mounts=2/3 nics=2 digest=0123abcd"
H100 = pool("h100")


def seen(**has):
    """A count of these kinds."""
    return DeviceCount(tuple(sorted(has.items())), digest="0123abcd")


@pytest.mark.parametrize(
    ("message", "has", "declares", "digest"),
    [
        (COUNT, {"gpus": 8, "mounts": 2, "nics": 2}, {"mounts": 3}, "0123abcd"),
        ("gpus=0", {"gpus": 0}, {}, ""),
        ("gpus=8 digest=12345678", {"gpus": 8}, {}, "12345678"),
        ("gpus=99999999", {"gpus": 10_000_000}, {}, ""),
    ],
)
def test_a_count_is_read_from_the_message(message, has, declares, digest):
    assert counted(message) == DeviceCount(tuple(sorted(has.items())), tuple(declares.items()), digest)


@pytest.mark.parametrize(
    "message",
    [
        "",
        "digest=0123abcd",
        "gpus=eight",
        "gpus=8 gpus=7",
        "gpus=8 and more",
        "gpus=-1",
        "gpus=8/",
        " ".join(f"kind{number}=1" for number in range(33)),
        "GPUS=8",
        "gpus=8...",
        "gpus=?",
        "gpus=? gpus=8",
        "gpus=?/8 nics=2",
    ],
)
def test_a_message_that_is_no_count_is_no_count_of_nothing(message):
    assert counted(message) is None


def test_the_most_that_was_ever_counted_is_kept_of_each_kind():
    first = learn(Inventory("gpu-1", "gpu-1"), seen(gpus=8, nics=1), at(0), at(0))
    assert (first.learnt, first.since) == ({"gpus": 8, "nics": 1}, at(0))
    second = learn(first, seen(gpus=7, nics=2), at(5), at(5))
    assert (second.learnt, second.since) == ({"gpus": 8, "nics": 2}, at(5))
    assert learn(second, seen(gpus=7), at(9), at(9)) is second, "and nothing is written where nothing is new"


def test_which_devices_these_are_is_kept_where_one_is_replaced():
    first = learn(Inventory("gpu-1", "gpu-1"), seen(gpus=8), at(0), at(0))
    other = learn(first, seen(gpus=8)._replace(digest="fedcba98"), at(5), at(5))
    assert (other.digest, other.since, other.learnt) == ("fedcba98", at(5), {"gpus": 8})


def test_what_a_user_wants_forgotten_is_learnt_anew_once():
    kept = Inventory("gpu-1", "gpu-1", learnt={"gpus": 8, "nics": 2}, since=at(0), forget_before=at(10))
    after = learn(kept, seen(gpus=7), at(11), at(11))
    assert (after.learnt, after.since) == ({"gpus": 7}, at(11))
    assert learn(after, seen(gpus=8), at(12), at(12)).learnt == {"gpus": 8}
    assert learn(after, seen(gpus=6), at(13), at(13)).learnt == {"gpus": 7}, "what came after is kept"


def test_what_was_forgotten_is_not_learnt_again_from_a_count_of_before():
    kept = Inventory("gpu-1", "gpu-1", learnt={"gpus": 8}, since=at(0), forget_before=at(10))
    assert learn(kept, seen(gpus=8), at(9), at(11)) is kept, "a GPU was taken out just now: the count is of before"
    assert should_have(a_node("gpu-1"), kept, [], seen(gpus=8), at(11)) == {}, "and until the next nothing is missed"
    assert learn(kept, seen(gpus=7), at(12), at(12)).learnt == {"gpus": 7}


def test_a_time_to_forget_that_has_not_come_forgets_nothing_yet():
    kept = Inventory("gpu-1", "gpu-1", learnt={"gpus": 8}, since=at(0), forget_before=at(60))
    assert learn(kept, seen(gpus=7), at(59), at(59)).learnt == {"gpus": 8}
    assert should_have(a_node("gpu-1"), kept, [], seen(gpus=7), at(59)) == {"gpus": 8}
    assert learn(kept, seen(gpus=7), at(60), at(60)).learnt == {"gpus": 7}


def test_what_a_node_declares_itself_is_not_learnt():
    says = DeviceCount((("mounts", 3),), (("mounts", 3),))
    assert learn(Inventory("gpu-1", "gpu-1"), says, at(0), at(0)).learnt == {}


@pytest.mark.parametrize(
    ("own", "group", "wanted"),
    [
        pytest.param({}, {}, {"gpus": 8, "mounts": 3}, id="learnt, and what the node declares"),
        pytest.param({}, {"gpus": 4, "mounts": 1}, {"gpus": 4, "mounts": 1}, id="of the group"),
        pytest.param({"gpus": 7}, {"gpus": 4}, {"gpus": 7, "mounts": 3}, id="of the node itself"),
        pytest.param({"gpus": 0}, {}, {"gpus": 0, "mounts": 3}, id="0: none is missed"),
    ],
)
def test_who_says_more_of_a_kind_outranks_who_says_less(own, group, wanted):
    count = DeviceCount((("gpus", 6), ("mounts", 2)), (("mounts", 3),))
    mine = Inventory("gpu-1", "gpu-1", learnt={"gpus": 8}, since=at(0), expected=own)
    theirs = Inventory("h100", selector=H100, expected=group)
    assert should_have(a_node(labels={"pool": "h100"}), mine, [theirs], count, at(0)) == wanted


@pytest.mark.parametrize(
    ("board", "uid", "others"),
    [("b", "new", True), ("b", "old", False), ("a", "new", False), ("", "new", False)],
    ids=["another machine", "a board replaced under its Node", "the same one again", "a kubelet that does not tell"],
)
def test_what_a_machine_had_says_nothing_of_another_one_that_has_registered_under_its_name(board, uid, others):
    test = IdleResult("idle", "gpu-check", passed=False, at=at(0), boot_id="boot", message="")
    kept = Inventory("gpu-1", learnt={"gpus": 8}, since=at(0), board="a", node_uid="old", tested=test)
    node = a_node("gpu-1", uid=uid, board=board)
    assert should_have(node, kept, (), None, at(2)) == ({} if others else {"gpus": 8})
    ours = of_machine(kept, node)
    assert ours.learnt == ({} if others else {"gpus": 8})
    assert (ours.board, ours.node_uid) == ((board, uid) if board else ("a", "old"))
    assert ours.tested == (None if others else test), "a test of the other machine says nothing of this one"
    assert gpu_label(node, kept, (), at(2)) == ({} if others else {GPU_PRESENT: "true"})
    assert not replace(kept, board="").is_of_another(node), "what was learnt before boards were kept stays"


def test_a_board_that_is_replaced_under_a_node_that_had_registered_again_begins_nothing_anew():
    kept = Inventory("gpu-1", learnt={"gpus": 8}, since=at(0), board="a", node_uid="old")
    again = of_machine(kept, a_node("gpu-1", uid="new", board="a"))
    assert again.learnt == {"gpus": 8}
    assert of_machine(again, a_node("gpu-1", uid="new", board="b")).learnt == {"gpus": 8}


def test_another_machine_whose_kubelet_tells_its_board_a_while_after_it_has_registered_begins_anew_then():
    kept = Inventory("gpu-1", learnt={"gpus": 8}, since=at(0), board="a", node_uid="old")
    silent = of_machine(kept, a_node("gpu-1", uid="new", board=""))
    assert silent.learnt == {"gpus": 8}, "nobody can tell yet"
    assert of_machine(silent, a_node("gpu-1", uid="new", board="b")).learnt == {}
    assert of_machine(silent, a_node("gpu-1", uid="new", board="a")).learnt == {"gpus": 8}


@pytest.mark.parametrize(
    ("kind", "unsure"),
    [(kind, kind not in ("mounts", "nfs-mounts", "nic-rates", "port-rates")) for kind in KINDS]
    + [("memory", False), ("fans", False)],
)
def test_a_kind_that_was_learnt_and_is_left_out_of_a_count_is_no_proof_that_it_is_there(kind, unsure):
    """Not where a sound node leaves it out, nor one that is no kind of ours: its program may have been taken off."""
    words = own_condition("gpu-1", counted("dpus=1"), {kind: 8})
    message = (
        f"the node could not count its {kind}; it names no {kind}: if that is for good, say 0 in spec.expected of its "
        "NodeInventory, or forget what was learnt by spec.forgetBefore (remediator inventory gpu-1 --reset)"
    )
    sound = "the node has what it is known to have"
    assert words[1:] == (
        (Status.UNKNOWN, "DevicesUnread", message) if unsure else (Status.FALSE, "DevicesComplete", sound)
    )
    assert unread(counted("dpus=1"), {kind: 0}) == (), "and one that is not expected is not missed"
    assert own_condition("gpu-1", counted(f"dpus=1 {kind}=8"), {kind: 8}).status is Status.FALSE


def test_detectors_of_the_version_before_that_count_memory_and_know_no_ram_leave_nothing_unread():
    """GiB of all NUMA nodes, 2011, are compared with nothing: `ram`, 2048, is learnt without some of them."""
    wanted = {"gpus": 8, "ram": 2048}
    assert own_condition("gpu-1", counted("gpus=8 memory=2011"), wanted)[1:3] == (Status.FALSE, "DevicesComplete")
    assert unread(counted("gpus=8 memory=2011 ram=?"), wanted) == ("ram",), "one that knows the kind and cannot read it"
    assert unread(counted("gpus=8 memory=?"), wanted) == ("ram",), "neither was read"
    assert unread(counted("memory=2011"), wanted) == ("gpus",), "and it stands for no other kind"


@pytest.mark.parametrize("kind", ["mounts", "nfs-mounts"])
def test_mounts_that_cannot_be_read_prove_nothing_though_only_the_node_says_how_many_there_should_be(kind):
    count = counted(f"gpus=8 {kind}=?")
    words = own_condition("gpu-1", count, {"gpus": 8})
    assert (words.status, words.message) == (Status.UNKNOWN, f"the node could not count its {kind}")


def test_a_kind_that_cannot_be_read_for_a_while_changes_no_digest():
    kept = Inventory("gpu-1", learnt={"gpus": 8}, digest="0123abcd", since=at(0))
    assert learn(kept, counted("gpus=? digest=9999ffff nics=2"), at(1), at(1)).digest == "0123abcd"


def test_a_group_speaks_of_its_nodes_only_and_of_several_the_most_counts():
    groups = [Inventory(f"g{most}", selector=H100, expected={"gpus": most}) for most in (4, 8, 2)]
    assert should_have(a_node(labels={"pool": "h100"}), None, groups, seen(gpus=1), at(0)) == {"gpus": 8}
    assert should_have(a_node(labels={"pool": "a100"}), None, groups, seen(gpus=1), at(0)) == {}


def test_what_is_lacking_is_told_with_its_numbers_and_a_kind_that_is_not_counted_lacks_nothing():
    short = lacking(seen(gpus=7, mounts=2, fans=1), {"mounts": 3, "gpus": 8, "nvme": 4, "fans": 2})
    assert phrase(short) == "gpus 7 of 8, mounts 2 of 3, fans 1 of 2"
    said = own_condition("gpu-1", seen(gpus=7, mounts=2), {"gpus": 8, "mounts": 3})
    assert said == (DEVICES_MISSING, Status.TRUE, "GpusMissing", "fewer than known: gpus 7 of 8, mounts 2 of 3")
    assert own_condition("gpu-1", seen(mounts=2), {"gpus": 8, "mounts": 3}).reason == "MountsMissing"
    slower = {"pcie-lanes": 256, "port-rates": 3200}
    assert own_condition("gpu-1", seen(**{"pcie-lanes": 256, "port-rates": 2900}), slower).reason == "PortRatesMissing"
    assert own_condition("gpu-1", seen(**{"pcie-lanes": 248, "port-rates": 2900}), slower).reason == "PcieLanesMissing"
    absent = seen(**{"nfs-mounts": 1, "pcie-lanes": 248, "routes": 1})
    assert own_condition("gpu-1", absent, {"nfs-mounts": 2, **slower, "routes": 1}).reason == "NfsNotMounted"
    assert own_condition("gpu-1", absent, {"nfs-mounts": 2, "routes": 2}).reason == "RoutesMissing"
    assert own_condition("gpu-1", seen(gpus=9), {"gpus": 8})[1:3] == (Status.FALSE, "DevicesComplete")


def test_a_kind_that_could_not_be_read_is_neither_there_nor_lacking():
    count = counted("gpus=? mounts=2/3 nics=2 fans=?")
    assert count == DeviceCount((("mounts", 2), ("nics", 2)), (("mounts", 3),), unread=("fans", "gpus"))
    assert count.kinds == {"gpus", "mounts", "nics", "fans"}
    assert lacking(count, {"gpus": 8, "nics": 2}) == {}
    assert unread(count, {"fans": 1, "gpus": 8, "nvme": 4}) == ("gpus", "nvme", "fans")
    assert unread(count, {"gpus": 0}) == (), "and none of them is expected"
    unsure = own_condition("gpu-1", count, {"gpus": 8, "nics": 2})
    assert unsure == (DEVICES_MISSING, Status.UNKNOWN, "DevicesUnread", "the node could not count its gpus")
    assert own_condition("gpu-1", count, {"gpus": 8, "mounts": 3}).status is Status.TRUE, "what lacks is a fault"
    assert learn(Inventory("gpu-1", learnt={"gpus": 8}), count, at(0), at(0)).learnt == {"gpus": 8, "nics": 2}


@pytest.mark.parametrize(
    ("heartbeat", "status", "known"),
    [
        (10, "True", True),
        (10, "Unknown", False),
        (-5, "True", False),
        (-4.9, "True", True),
        (15, "True", True),
        (15.1, "True", False),
    ],
    ids=["now", "cannot tell", "15 minutes ago", "less than that ago", "by a clock that is ahead", "from the future"],
)
def test_only_a_count_of_lately_says_what_there_is(heartbeat, status, known):
    said = condition("DeviceInventory", status, since=-60, heartbeat=heartbeat, message=COUNT)
    node = a_node("gpu-1", said, counted=counted(COUNT))
    assert (fresh(node, at(10)) is not None) == known
    assert fresh(a_node(counted=counted(COUNT)), at(10)) is None, "nor one without its Condition"


@pytest.mark.parametrize(
    ("since", "new"),
    [(None, True), (0, True), (-1439, True), (-1440, False)],
    ids=["none", "just", "a day less", "a day"],
)
def test_what_a_node_has_lacked_for_a_day_before_its_case_is_not_what_the_case_is_about(since, new):
    said = [] if since is None else [condition(DEVICES_MISSING, since=since)]
    assert new_to_case(a_node("gpu-1", *said), at(0)) is new
    unsure = [replace(one, status=Status.UNKNOWN) for one in said]
    assert new_to_case(a_node("gpu-1", *unsure), at(0)) is new, "nor what it could not count for as long"
    well = [replace(one, status=Status.FALSE) for one in said]
    assert new_to_case(a_node("gpu-1", *well), at(0)), "and it may have come back in between"
