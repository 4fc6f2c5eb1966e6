"""Whether the GPUs of a node are what a Pod asks for, by each of its annotations."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.scheduler.attributes.catalog import NO_FACTS, facts_of
from remediator.scheduler.attributes.requirement import Met
from remediator.scheduler.attributes.selector import ANYTHING, selector
from remediator.scheduler.attributes.values import like

GPU, MIG, AMD = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "amd.com/gpu"
A100 = {
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
    "nvidia.com/gpu.memory": "40960",
    "nvidia.com/gpu.family": "ampere",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.compute.major": "8",
    "nvidia.com/gpu.compute.minor": "0",
    "nvidia.com/cuda.driver-version.full": "535.129.03",
    "nvidia.com/cuda.runtime-version.full": "12.2",
    f"{MIG}.memory": "4864",
    f"{MIG}.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
}
GB200 = {"nvidia.com/gpu.product": "NVIDIA-GB200", "nvidia.com/gpu.clique": "7b968a6d-c8aa-45e1-9e07-e1e51be99c31.1"}
OLD = {f"nvidia.com/cuda.driver.{part}": value for part, value in (("major", "455"), ("minor", "06"), ("rev", ""))}
MI300X = {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"}
YES, NO, UNKNOWN = Met.YES, Met.NO, Met.UNKNOWN

ASKED = [
    pytest.param(A100, GPU, "memory>=40Gi", YES, id="as much memory as the card has"),
    pytest.param(A100, GPU, "memory>40Gi", NO, id="more than it has"),
    pytest.param(A100, GPU, "memory>=40G, memory<80G", YES, id="between two sizes"),
    pytest.param(A100, f"{GPU}.shared", "memory>=40Gi", YES, id="a share of a whole GPU"),
    pytest.param(A100, MIG, "memory>=40Gi", NO, id="a MIG device has memory of its own"),
    pytest.param(A100, MIG, "model=*MIG-1g.5gb", YES, id="and a model"),
    pytest.param(A100, GPU, "model in (*H100*, *a100*)", YES, id="a model in any case"),
    pytest.param(A100, GPU, "model=A100", NO, id="a word is the whole value"),
    pytest.param(A100, GPU, "model notin (*H100*)", YES, id="another model"),
    pytest.param(A100, GPU, "family!=hopper", YES, id="another family"),
    pytest.param(A100, GPU, "computeCapability>=8", YES, id="8 is 8.0"),
    pytest.param(A100, GPU, "computeCapability>=8.6", NO, id="8.0 is less than 8.6"),
    pytest.param(A100, GPU, "driver>=535.54, driver<550", YES, id="a driver between two"),
    pytest.param(A100, GPU, "cuda>12.2", NO, id="CUDA"),
    pytest.param(A100, GPU, "count=8", YES, id="so many GPUs"),
    pytest.param(A100, GPU, "ecc=true", UNKNOWN, id="no label says whether ECC is on"),
    pytest.param(A100, GPU, "ecc!=true", UNKNOWN, id="nor whether it is off"),
    pytest.param(A100, GPU, "ecc", UNKNOWN, id="nor whether there is any"),
    pytest.param(A100 | {"remediator.dev/gpu.ecc": "true"}, GPU, "ecc=true", YES, id="a user says that ECC is on"),
    pytest.param(A100 | {"remediator.dev/gpu.ecc": "off"}, GPU, "ecc=true", NO, id="or off"),
    pytest.param(A100 | {"remediator.dev/gpu.ecc": "maybe"}, GPU, "ecc=true", UNKNOWN, id="or something else"),
    pytest.param(A100 | {"nvidia.com/gpu.memory": "much"}, GPU, "memory>1", UNKNOWN, id="a label that is no size"),
    pytest.param(A100, GPU, "clique", NO, id="discovery found no fabric"),
    pytest.param(A100, GPU, "!clique", YES, id="which may be asked for"),
    pytest.param(A100, GPU, "clique!=x", YES, id="and is another than any"),
    pytest.param(GB200, GPU, "clique=7b968a6d*.1", YES, id="the clique"),
    pytest.param(GB200, GPU, "!clique", NO, id="it has one"),
    pytest.param({}, GPU, "clique", UNKNOWN, id="nobody discovers GPUs here"),
    pytest.param({}, GPU, "!clique", UNKNOWN, id="so nobody knows of cliques"),
    pytest.param(OLD, GPU, "driver>=455.6", YES, id="a driver in the labels of old releases"),
    pytest.param(MI300X, AMD, "memory>=192G, model=*MI300X*", YES, id="AMD"),
    pytest.param(MI300X, GPU, "memory>=1", UNKNOWN, id="labels of another vendor say nothing"),
    pytest.param(MI300X, AMD, "computeCapability>=1", UNKNOWN, id="AMD has no such thing"),
    pytest.param(A100, "", "memory>=40Gi", YES, id="a Pod with a ResourceClaim alone asks for whole GPUs"),
    pytest.param(A100, GPU, "memory>=80G, ecc=true", NO, id="no outranks unknown"),
]


@pytest.mark.parametrize(("labels", "resource", "required", "met"), ASKED)
def test_the_gpus_of_a_node_are_what_is_required(labels, resource, required, met) -> None:
    asked = selector(required, None, None)
    assert not asked.mistake
    assert asked.met(facts_of(labels), (resource,) if resource else ()) is met


def test_each_kind_of_gpu_that_is_asked_for_must_be_so() -> None:
    assert selector("memory>=40Gi", None, None).met(facts_of(A100), (GPU, MIG)) is NO


@pytest.mark.parametrize(
    ("row", "same"),
    [
        ({"key": "nvidia.com/gpu-memory", "operator": "Gt", "values": ["8000"]}, "memory>8000"),
        ({"key": "memory", "operator": "Lt", "values": ["40Gi"]}, "memory<40Gi"),
        ({"key": "ecc", "operator": "In", "values": ["true"]}, "ecc=true"),
        ({"key": "model", "operator": "NotIn", "values": ["*A100*", "*H100*"]}, "model notin (*A100*, *H100*)"),
        ({"key": "clique", "operator": "Exists"}, "clique"),
        ({"key": "clique", "operator": "DoesNotExist"}, "!clique"),
    ],
)
def test_an_affinity_asks_as_a_line_does(row, same) -> None:
    assert selector(None, None, json.dumps({"required": [row]})) == selector(same, None, None)
    assert selector(None, None, json.dumps({"preferred": [row]})) == selector(None, same, None)


def test_all_annotations_count_and_pods_that_ask_for_the_same_have_the_same() -> None:
    both = selector("ecc=true", None, json.dumps({"required": [{"key": "clique", "operator": "Exists"}]}))
    assert both == selector("clique, ecc = on, clique", None, None)
    assert hash(both) == hash(selector("clique, ecc = on, clique", None, None))
    assert selector(None, None, "{}") == ANYTHING


@pytest.mark.parametrize(
    ("affinity", "words"),
    [
        ("[", "remediator.dev/gpu-affinity: Expected `object`"),
        ("{", "remediator.dev/gpu-affinity: Input data was truncated"),
        ("[" * 8000, "remediator.dev/gpu-affinity: "),
        ('{"requird": []}', "unknown field `requird`"),
        ('{"required": [{"operator": "Gt"}]}', "missing required field `key` - at `$.required[0]`"),
        ('{"required": [{"key": "ecc", "operator": "Is"}]}', "'Is' - at `$.required[0].operator`"),
        ('{"required": [{"key": "x", "operator": "In"}]}', "required[0].key: 'x' is no attribute; write one of"),
        ('{"preferred": [{"key": "ecc", "operator": "In"}]}', "preferred[0]: In takes 1 to 16 values"),
        ('{"required": [{"key": "memory", "operator": "Gt"}]}', "required[0]: Gt takes one value"),
        ('{"required": [{"key": "ecc", "operator": "Exists", "values": ["on"]}]}', "Exists takes no value"),
        ('{"required": [{"key": "ecc", "operator": "Gt", "values": ["on"]}]}', "ecc is a switch and is never more"),
        (json.dumps({"required": [{"key": "ecc", "operator": "Exists"}] * 17}), "required: more than 16 requirements"),
        (" " * 8193, "longer than 8192 characters"),
    ],
)
def test_a_mistake_in_an_affinity_has_its_place(affinity: str, words: str) -> None:
    assert words in selector(None, None, affinity).mistake


def test_a_mistake_says_which_annotation_and_holds_no_comma_since_the_scheduler_joins_texts_with_commas() -> None:
    assert selector("x", None, None).mistake.startswith("remediator.dev/gpu: at character 1: ")
    assert selector(None, "x", None).mistake.startswith("remediator.dev/gpu-preferred: at character 1: ")
    assert "," not in selector(None, None, "[]").mistake


@given(*[st.none() | st.text(max_size=40)] * 3)
def test_no_annotation_raises_and_a_mistake_is_short_and_without_a_comma(required, preferred, affinity) -> None:
    asked = selector(required, preferred, affinity)
    assert asked == ANYTHING or asked.required or asked.preferred or asked.mistake
    assert len(asked.mistake) <= 300
    assert "," not in asked.mistake


def test_preferences_are_counted_where_they_are_known_to_be_met() -> None:
    asked = selector(None, "memory>=40Gi, ecc=true, family=hopper", None)
    assert [asked.liked(facts_of(labels), (GPU,)) for labels in (A100, {}, {"nvidia.com/gpu.family": "hopper"})] == [
        1,
        0,
        1,
    ]


def test_nodes_with_the_same_gpus_share_their_facts_whatever_else_their_labels_say() -> None:
    assert facts_of(A100 | {"kubernetes.io/hostname": "a"}) is facts_of({"nvidia.com/gfd.timestamp": "1"} | A100)
    assert facts_of({"pool": "a"}) is NO_FACTS


@given(st.text("ab", max_size=8), st.text("ab*", max_size=8))
def test_a_star_stands_for_any_characters(fact: str, wanted: str) -> None:
    assert like(fact, wanted) is _like(fact, wanted)


def _like(fact: str, wanted: str) -> bool:
    if not wanted:
        return not fact
    if wanted[0] == "*":
        return _like(fact, wanted[1:]) or (bool(fact) and _like(fact[1:], wanted))
    return bool(fact) and fact[0] == wanted[0] and _like(fact[1:], wanted[1:])


def test_many_stars_take_no_time() -> None:
    assert not like("a" * 63, "*a" * 31 + "b")


@pytest.mark.parametrize("place", [0, 1, 2])
def test_of_annotations_that_nobody_reads_to_their_end_none_is_kept(place: int) -> None:
    """64 Pods with 128 KiB each, 8 MiB in all; a tenant may make thousands, and Kubernetes lets each have 256 KiB."""
    tracemalloc.start()
    try:
        for count in range(64):
            texts: list[str | None] = [None, None, None]
            texts[place] = f"{count}" + " " * 2**17
            assert "longer than" in selector(*texts).mistake
        assert tracemalloc.get_traced_memory()[0] < 2**20
    finally:
        tracemalloc.stop()
