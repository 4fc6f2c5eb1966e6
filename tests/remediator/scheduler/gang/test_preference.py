"""Where Pods of a gang go: near their siblings, or where there is room for all; never at the cost of health."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core import job, names
from remediator.core.spare import PodHolding
from remediator.kube.api import gpu_pods
from remediator.metrics import REGISTRY
from remediator.scheduler.extender import Extender
from remediator.scheduler.gang.preference import GangReason, Preference, preferred
from remediator.scheduler.gang.told import gang
from remediator.scheduler.gang.topology import Domain, Topology
from remediator.scheduler.packing.points import Score
from remediator.scheduler.reasons import VerdictReason
from remediator.scheduler.row import NodeState
from remediator.scheduler.score import TIER, Scorer
from remediator.settings import Settings
from tests.builders import a_node
from tests.harness.replica import an_extender
from tests.harness.scheduler import GPU, names_body, pod

RACK, ZONE = "topology.kubernetes.io/rack", "topology.kubernetes.io/zone"
R = VerdictReason
RACK_A, RACK_B, ZONE_A = Domain(2, "rack=a"), Domain(2, "rack=b"), Domain(1, "zone=a")
JOBSET = "jobset.sigs.k8s.io/jobset-name"

ROOMS, SPREAD, NEAR = {RACK_A: 4, RACK_B: 6, ZONE_A: 10}, [RACK_A, ZONE_A, RACK_B, ZONE_A, RACK_B], "NearSiblings"
PREFERS = [
    pytest.param(
        SPREAD,
        {},
        0,
        (ZONE_A, RACK_B),
        NEAR,
        id="most siblings, each level",
    ),
    pytest.param([RACK_B, RACK_A], {RACK_A: 9}, 2, (RACK_B,), NEAR, id="two racks with one each: always the same"),
    pytest.param([], ROOMS, 4, (RACK_A,), "RoomForAll", id="room for all, the smallest such rack"),
    pytest.param([], ROOMS, 8, (ZONE_A,), "RoomForAll", id="only the zone has room for all"),
    pytest.param([], ROOMS, 11, (ZONE_A,), "MostRoom", id="none has: the wide one with most room"),
    pytest.param([], ROOMS, 0, (RACK_B,), "MostRoom", id="nobody says how many: most room"),
    pytest.param([], {RACK_A: 0}, 0, (), "Anywhere", id="nobody has room"),
]


@pytest.mark.parametrize(("siblings", "rooms", "size", "expected", "why"), PREFERS)
def test_which_domains_are_preferred_and_why(siblings, rooms, size, expected, why) -> None:
    assert preferred(siblings, rooms, size) == Preference(GangReason(why), expected)


BY = {Score.FGD: 100_000, Score.BLEND: 20, Score.PACKING: 11}  # points of packing that there are, 0 too


@given(st.sampled_from(Score), st.sampled_from(sorted(TIER, key=str)), st.data())
def test_no_domain_takes_a_node_out_of_its_tier(by: Score, reason: R, data: st.DataObject) -> None:
    """Nor, with `fgd`, out of what the Pod prefers."""
    scorer, level = Scorer(by), data.draw(st.integers(0, 3))
    least = scorer.worst(reason) + BY[by] * data.draw(st.integers(0, 9) if by is Score.FGD else st.just(0))
    packing = data.draw(st.integers(0, BY[by] - 1))
    assert least <= scorer.nearer(least + packing, level, 3) < least + BY[by]


@given(st.sampled_from(Score), st.integers(0, 3), st.data())
def test_a_preferred_domain_counts_more_than_packing(by: Score, levels: int, data: st.DataObject) -> None:
    scorer, least = Scorer(by), Scorer(by).worst(R.FIT)
    here, there = (least + data.draw(st.integers(0, BY[by] - 1)) for _ in range(2))
    if levels:
        assert scorer.nearer(here, levels, levels) > scorer.nearer(there, 0, levels)
    else:
        assert scorer.nearer(here, 0, 0) == here


@pytest.mark.parametrize("by", Score)
def test_of_nodes_in_the_same_domain_the_fuller_one_comes_first(by: Score) -> None:
    least, most = Scorer(by).worst(R.FIT), BY[by] - 1
    for level in range(3):
        emptier, fuller = (Scorer(by).nearer(least + packing, level, 2) for packing in (0, most))
        assert emptier < fuller


def test_a_node_that_moves_to_another_rack_leaves_the_first() -> None:
    topology = Topology((RACK, ZONE))
    before, after = a_node("n1", labels={RACK: "a", ZONE: "z"}), a_node("n1", labels={RACK: "b", ZONE: "z"})
    topology.moved(None, before)
    topology.moved(before, after)
    assert topology.of("n1") == (Domain(2, f"{RACK}=b"), Domain(1, f"{ZONE}=z"))
    assert list(topology.members(Domain(2, f"{RACK}=a"))) == []
    topology.moved(after, None)
    assert (topology.of("n1"), list(topology.domains()), topology.version) == ((), [], 3)


NODES = {f"{rack}{index}": rack for rack in "ab" for index in range(4)}


def fleet(**rows: NodeState) -> Extender:
    """Two racks of four nodes with eight GPUs each; rack b is half used."""
    extender, _ = an_extender()
    for name, rack in NODES.items():
        extender._fleet.topology.moved(None, a_node(name, labels={RACK: rack}))
        row = NodeState(R.FIT, ((GPU, 8),), ((GPU, 4),) if rack == "b" else ())
        extender._fleet.rows[name] = rows.get(name, row)
    extender._fleet.complete.set()
    return extender


def member(labels: dict[str, str] | None = None, **annotations: str) -> dict[str, Any]:
    asking = pod(gpus=4)
    notes = {f"remediator.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    asking["metadata"] |= {"labels": {JOBSET: "train"} if labels is None else labels, "annotations": notes}
    return asking


def read(asking: dict[str, Any]) -> gpu_pods.GpuPod:
    return msgspec.json.decode(json.dumps(asking), type=gpu_pods.GpuPod)


def best(extender: Extender, asking: dict[str, Any]) -> set[str]:
    """The racks of the nodes with the highest score."""
    answer = json.loads(extender.prioritize(names_body(list(NODES), asking)))
    assert all(type(entry["Score"]) is int for entry in answer)
    most = max(entry["Score"] for entry in answer)
    return {NODES[entry["Host"]] for entry in answer if entry["Score"] == most}


def test_the_first_pod_goes_where_all_have_room_and_others_where_it_is_fullest() -> None:
    """Rack b has room for four Pods of four GPUs, rack a for eight."""
    extender = fleet()
    assert best(extender, pod(gpus=4)) == {"b"}
    assert best(extender, member(gang_size="4")) == {"b"}
    assert best(extender, member(gang_size="5")) == {"a"}
    assert best(extender, member()) == {"a"}, "nobody says how many come"


def test_the_next_pods_go_to_their_siblings_and_other_gangs_do_not() -> None:
    extender = fleet()
    extender._fleet.siblings.moved(None, PodHolding("a1", ((GPU, 4),), read(member()).gang))
    assert best(extender, member()) == {"a"}
    assert best(extender, member({JOBSET: "other"}, gang_size="4")) == {"b"}
    extender._fleet.siblings.moved(PodHolding("a1", ((GPU, 4),), read(member()).gang), None)
    assert best(extender, member(gang_size="4")) == {"b"}


def preferences(why: str) -> float:
    return REGISTRY.get_sample_value("remediator_extender_gang_answers_total", {"preferred": why}) or 0


def test_why_a_domain_was_preferred_is_counted_by_answer() -> None:
    extender = fleet()
    asked = {"RoomForAll": member(gang_size="4"), "MostRoom": member()}
    for why, asking in asked.items():
        before = preferences(why)
        best(extender, asking)
        assert preferences(why) == before + 1
    extender._fleet.siblings.moved(None, PodHolding("a1", ((GPU, 4),), read(member()).gang))
    before = preferences("NearSiblings")
    best(extender, member())
    best(extender, pod(gpus=4))
    assert preferences("NearSiblings") == before + 1


def test_what_is_said_of_a_gang_has_its_pods_by_node_the_domain_and_why() -> None:
    topology = fleet()._fleet.topology
    rack = {each.value: each for each, _ in topology.domains()}
    rooms = {rack[f"{RACK}=a"]: 6, rack[f"{RACK}=b"]: 3}
    assert gang("JobSet t/train", 4, ["a1", "a1", "b0"], topology, rooms).lines() == [
        "gang: JobSet t/train, of 4 Pods; 3 with GPUs are on a1 (2), b0 (1)",
        f"  NearSiblings: prefers {RACK}=a (4 nodes, room for 6 such Pods), where most of its siblings are",
    ]
    assert gang("JobSet t/train", 0, [], Topology(()), {}).lines() == [
        "gang: JobSet t/train, no annotation says of how many Pods; none has a node",
        "  Anywhere: prefers no domain: no healthy node with room has a label of --gang-topology",
    ]


def test_health_outranks_siblings() -> None:
    """Every node of rack a is unknown."""
    extender = fleet(**{name: NodeState(R.HEALTH_UNKNOWN, ((GPU, 8),)) for name in NODES if name.startswith("a")})
    extender._fleet.siblings.moved(None, PodHolding("a1", ((GPU, 4),), read(member()).gang))
    assert best(extender, member()) == {"b"}


def test_answers_that_stand_ready_follow_what_becomes_of_nodes() -> None:
    extender = fleet()
    assert best(extender, member(gang_size="4")) == {"b"}
    full = NodeState(R.FIT, ((GPU, 8),), ((GPU, 8),))
    extender._on_row("b0", extender._fleet.rows["b0"], full)
    assert best(extender, member(gang_size="4")) == {"a"}, "rack b has room for three now"


GANGS = [
    ({JOBSET: "train"}, True),
    ({"remediator.dev/gang": "mine"}, True),
    ({"remediator.dev/gang": "false", JOBSET: "train"}, False),
    ({"batch.kubernetes.io/job-name": "many"}, False),
    ({}, False),
]


@pytest.mark.parametrize(("labels", "expected"), GANGS)
def test_which_pods_are_of_a_gang(labels: dict[str, str], expected: bool) -> None:
    assert (read(member(labels)).gang is not None) is expected


def test_the_labels_that_are_read_are_those_of_gangs() -> None:
    known = [field.encode_name for field in msgspec.structs.fields(gpu_pods.GangLabels)]
    assert known == [label for label, _ in job.GANGS]


def test_a_pod_group_and_a_group_of_volcano_are_gangs_in_their_namespace() -> None:
    grouped = pod(gpus=1)
    grouped["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    assert str(read(grouped).gang) == "PodGroup default/g"
    assert str(read(pod(gpus=1) | {"metadata": {"annotations": {job.VOLCANO: "v"}, "namespace": "t"}}).gang) == (
        "Volcano group t/v"
    )


@pytest.mark.parametrize(("text", "size"), [("16", 16), ("0", 0), ("many", 0), ("-1", 0), ("9999999", 0)])
def test_the_size_of_a_gang_is_a_number_or_unknown(text: str, size: int) -> None:
    assert read(member(gang_size=text)).gang_size == size


def test_a_short_pod_may_use_nodes_that_have_failed_lately() -> None:
    failed = {name: NodeState(R.FIT, ((GPU, 8),), ((GPU, 4),), history=3) for name in NODES if name.startswith("b")}
    extender, short, long = fleet(**failed), pod(gpus=4), pod(gpus=4)
    short["spec"]["activeDeadlineSeconds"], long["spec"]["activeDeadlineSeconds"] = 3600, 3601
    assert best(extender, long) == {"a"}
    assert best(extender, short) == {"b"}, "the fuller nodes"


def test_the_labels_of_domains_are_a_setting() -> None:
    assert Settings().domains == names.DOMAINS
    assert Settings(gang_topology="example.com/rack").domains == ("example.com/rack",)
    assert Settings(gang_topology="").domains == ()
    with pytest.raises(ValueError, match=r"--gang-topology is 'a b', not at most 4 keys of labels"):
        Settings(gang_topology="a b")
