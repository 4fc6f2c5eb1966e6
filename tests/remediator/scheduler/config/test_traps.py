"""The traps of a configuration with extenders: each is named with its place, and nothing else is."""

import copy
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from remediator.core.kubernetes_version import Kubernetes
from remediator.scheduler.config.traps import traps
from remediator.scheduler.config.weights import WEIGHTS
from remediator.scheduler.config.written import Wanted, written
from remediator.scheduler.packing.points import Score

Config = dict[str, Any]
GPU = "nvidia.com/gpu"
GOOD: Config = yaml.safe_load(written(Wanted(Kubernetes(1, 37), score=Score.BLEND)))
BINDER = {
    "urlPrefix": "http://127.0.0.1:39999/share",
    "bindVerb": "bind",
    "filterVerb": "filter",
    "nodeCacheCapable": True,
    "httpTimeout": "1s",
    "managedResources": [{"name": "aliyun.com/gpu-mem", "ignoredByScheduler": True}],
}


def changed(**fields: Any) -> Config:
    """The good configuration with these fields of its extender; None takes one away."""
    config = copy.deepcopy(GOOD)
    extender = config["extenders"][0] | fields
    config["extenders"] = [{key: value for key, value in extender.items() if value is not None}]
    return config


def beside(*extenders: Config, **top: Any) -> Config:
    """The good configuration with more extenders, and with these fields beside them."""
    return copy.deepcopy(GOOD) | {"extenders": [*GOOD["extenders"], *extenders]} | top


def profiles(*rows: Config, **fields: Any) -> Config:
    return changed(**fields) | {"profiles": list(rows)}


def strategy(kind: str, *resources: str, shape: tuple[int, ...] = (), count: int = 1) -> Config:
    """A profile whose NodeResourcesFit scores so."""
    points = [{"utilization": 100 * index, "score": score} for index, score in enumerate(shape)]
    scoring = {"type": kind, "resources": [{"name": name, "weight": 1} for name in resources]}
    scoring |= {"requestedToCapacityRatio": {"shape": points}} if points else {}
    row = {"schedulerName": "default-scheduler"}
    row |= {"plugins": {"multiPoint": {"enabled": [{"name": "NodeResourcesFit", "weight": count}]}}}
    return row | {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": scoring}}]}


WITHOUT_CA = {"serverName": "a"}
TRAPS = [
    pytest.param(changed(weight=0), "extenders[0].weight", "is 0: beside prioritizeVerb", id="weight of 0"),
    pytest.param(changed(weight=None), "extenders[0].weight", "is not set", id="no weight"),
    pytest.param(changed(weight=-1), "extenders[0].weight", "is -1", id="negative weight"),
    pytest.param(changed(weight=20), "extenders[0].weight", "outweigh what users prefer", id="weight that rules"),
    pytest.param(
        beside(BINDER, BINDER | {"managedResources": []}), "extenders[2].bindVerb", "only one may", id="two binders"
    ),
    pytest.param(
        beside(BINDER | {"ignorable": True}),
        "extenders[1].ignorable",
        "must be false beside bindVerb",
        id="ignorable binder",
    ),
    pytest.param(changed(ignorable=None), "extenders[0].ignorable", "no Pod of its is scheduled", id="not ignorable"),
    pytest.param(
        beside(BINDER | {"managedResources": [{"name": GPU}]}),
        "extenders[1].managedResources",
        f"{GPU} is refused: extenders[0]",
        id="a resource of two extenders",
    ),
    pytest.param(
        changed(managedResources=[{"name": GPU}, {"name": GPU}]),
        "extenders[0].managedResources",
        "once",
        id="a resource twice",
    ),
    pytest.param(
        changed(managedResources=[{"name": "gpu"}]),
        "extenders[0].managedResources[0].name",
        "no extended resource",
        id="no resource",
    ),
    pytest.param(
        changed(managedResources=[{"name": GPU, "ignoredByScheduler": True}]),
        "extenders[0].managedResources[0].ignoredByScheduler",
        "more Pods than GPUs",
        id="nobody counts",
    ),
    pytest.param(
        changed(managedResources=[{"name": "aliyun.com/gpu-mem"}]),
        "extenders[0].managedResources[0].name",
        "needs bindVerb",
        id="nobody chooses the card",
    ),
    pytest.param(
        changed(nodeCacheCapable=False), "extenders[0].nodeCacheCapable", "100 MB a request", id="whole nodes"
    ),
    pytest.param(changed(httpTimeout=None), "extenders[0].httpTimeout", "is not set", id="5 s by default"),
    pytest.param(changed(httpTimeout="1m"), "extenders[0].httpTimeout", "is 1m", id="a minute"),
    pytest.param(changed(httpTimeout="500"), "extenders[0].httpTimeout", "no duration", id="a time without a unit"),
    pytest.param(changed(urlPrefix="10.0.0.1:8443"), "extenders[0].urlPrefix", "write https://", id="no scheme"),
    pytest.param(
        changed(urlPrefix="http://a/x"),
        "extenders[0].urlPrefix",
        "do not change that",
        id="http in spite of enableHTTPS",
    ),
    pytest.param(
        changed(filterVerb=None, prioritizeVerb=None, preemptVerb=None), "extenders[0]", "never called", id="no verb"
    ),
    pytest.param(
        changed(tlsConfig=WITHOUT_CA), "extenders[0].tlsConfig.caFile", "believes any certificate", id="no authority"
    ),
    pytest.param(
        changed(tlsConfig={"insecure": True, "caFile": "a"}),
        "extenders[0].tlsConfig.insecure",
        "refused",
        id="insecure with an authority",
    ),
    pytest.param(
        changed(tlsConfig={"caFile": "a", "certFile": "b"}), "extenders[0].tlsConfig", "set both", id="no key"
    ),
    pytest.param(changed(weigth=5), "", "unknown field `weigth` - at `$.extenders[0]`", id="a mistyped field"),
    pytest.param(
        changed(weight="5"),
        "",
        "Expected `int | null`, got `str` - at `$.extenders[0].weight`",
        id="a number in quotes",
    ),
    pytest.param(changed() | {"kind": "Policy"}, "kind", "removed in Kubernetes 1.23", id="a Policy"),
    pytest.param(changed() | {"kind": "Pod"}, "kind", "is 'Pod', not", id="another kind"),
    pytest.param(changed() | {"apiVersion": "v1"}, "apiVersion", "is 'v1'; write kubescheduler", id="no group"),
    pytest.param(
        changed() | {"apiVersion": "kubescheduler.config.k8s.io/v1beta2"},
        "apiVersion",
        "is read by Kubernetes 1.22 to 1.27, not by 1.31",
        id="too old",
    ),
    pytest.param(
        profiles({"schedulerName": "gpu"}),
        "leaderElection.resourceName",
        "only one of the two would work",
        id="one Lease for two",
    ),
    pytest.param(
        profiles({}, {}), "profiles", "default-scheduler is refused: it is there 2 times", id="one name twice"
    ),
    pytest.param(
        profiles({}, {"schedulerName": "b"}, managedResources=None),
        "extenders[0].managedResources",
        "every profile",
        id="all profiles ask",
    ),
    pytest.param(
        changed(weight=3),
        "profiles[0]: NodeResourcesFit",
        "counts up to 100, one GPU of the extender 45",
        id="the default spreads",
    ),
    pytest.param(
        profiles(strategy("LeastAllocated", "cpu", count=2)),
        "profiles[0]: NodeResourcesFit",
        "counts up to 200",
        id="spreading counts twice",
    ),
    pytest.param(
        profiles(strategy("LeastAllocated", "cpu", GPU)),
        "profiles[0]: NodeResourcesFit",
        f"spreads {GPU}",
        id="spreads what we pack",
    ),
    pytest.param(
        profiles(strategy("RequestedToCapacityRatio", GPU, shape=(10, 0))),
        "profiles[0]: NodeResourcesFit",
        f"spreads {GPU}",
        id="a shape that falls",
    ),
    pytest.param(
        profiles({"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": 1}}]}),
        "",
        "scoringStrategy",
        id="odd arguments",
    ),
]


@pytest.mark.parametrize(("config", "place", "words"), TRAPS)
def test_a_trap_is_named_with_its_place_and_alone(config: Config, place: str, words: str) -> None:
    (finding,) = traps(config, Kubernetes(1, 31), Score.BLEND)
    assert finding.place == place
    assert words in finding.message


FINE = [
    pytest.param(GOOD, id="what is shipped"),
    pytest.param(beside(BINDER), id="another extender that binds"),
    pytest.param(profiles(strategy("RequestedToCapacityRatio", GPU, shape=(0, 10))), id="a plugin that packs, too"),
    pytest.param(profiles(strategy("MostAllocated", GPU), weight=1), id="another one"),
    pytest.param(
        profiles({"plugins": {"score": {"disabled": [{"name": "NodeResourcesFit"}]}}}, weight=1),
        id="a score that is off",
    ),
    pytest.param(profiles({}, {"schedulerName": "b"}), id="two profiles, and resources"),
    pytest.param(
        profiles({"schedulerName": "b"}) | {"leaderElection": {"leaderElect": False}}, id="a second scheduler alone"
    ),
    pytest.param({"apiVersion": GOOD["apiVersion"], "kind": GOOD["kind"]}, id="no extender"),
    pytest.param(changed(httpTimeout="1s500ms"), id="a time of two parts"),
]


@pytest.mark.parametrize("config", FINE)
def test_what_is_meant_so_is_not_named(config: Config) -> None:
    assert traps(config, Kubernetes(1, 31), Score.BLEND) == []


words = st.sampled_from(["name", "args", "weight", "score"])
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner),
    max_leaves=8,
)


@given(st.sampled_from([*GOOD, "profiles"]), st.sampled_from(sorted(GOOD["extenders"][0])), anything)
def test_whatever_stands_in_a_field_nothing_is_raised(top: str, field: str, value: Any) -> None:
    assert isinstance(traps(GOOD | {top: value}), list)
    assert isinstance(traps(changed(**{field: value})), list)
    assert isinstance(traps(value), list)


def test_a_finding_is_one_line() -> None:
    assert [str(finding) for finding in traps(changed(weight=0), score=Score.BLEND)] == [
        "extenders[0].weight: is 0: beside prioritizeVerb it must be more than 0; write 7"
    ]


@pytest.mark.parametrize(("score", "weights"), [(Score.FGD, {1}), (Score.BLEND, {7, 19}), (Score.PACKING, {10, 39})])
def test_the_weight_that_is_right_depends_on_how_scores_are_made(score: Score, weights: set[int]) -> None:
    def places(weight: int) -> list[str]:
        return [finding.place for finding in traps(changed(weight=weight), score=score)]

    most = WEIGHTS[score].most
    assert all(places(weight) == [] for weight in weights)
    assert places(most + 1) == ["extenders[0].weight"]
    assert places(1) == ([] if score is Score.FGD else ["profiles[0]: NodeResourcesFit"])
