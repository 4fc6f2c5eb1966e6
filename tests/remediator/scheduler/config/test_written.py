"""The configuration that is written: for each Kubernetes, for one scheduler or a second one, with or without us."""

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

from remediator.core.kubernetes_version import Kubernetes
from remediator.scheduler.config import versions
from remediator.scheduler.config.traps import traps
from remediator.scheduler.config.versions import kubernetes
from remediator.scheduler.config.weights import WEIGHTS
from remediator.scheduler.config.written import Wanted, written
from remediator.scheduler.packing.points import Score
from tests.harness.yaml_files import parsed

SHIPPED = Path(__file__).parents[4] / "deploy" / "scheduler" / "scheduler-config.yaml"
NEW = Kubernetes(1, 37)


def text(**wanted: Any) -> str:
    return written(Wanted(**({"kubernetes": NEW} | wanted)))


def test_the_examples_of_the_docstrings_hold() -> None:
    assert doctest.testmod(versions).failed == 0


def test_the_shipped_file_is_what_is_written() -> None:
    assert SHIPPED.read_text() == text()


@pytest.mark.parametrize("score", Score)
def test_the_weight_is_that_of_the_score_and_no_trap(score: Score) -> None:
    config = parsed(text(score=score))
    assert config["extenders"][0]["weight"] == WEIGHTS[score].write
    assert traps(config, NEW, score) == []
    assert f"--extender-score {score.value}`" in text(score=score)


@pytest.mark.parametrize("minor", range(22, 38))
@pytest.mark.parametrize("name", ["", "gpu"])
@pytest.mark.parametrize(("packs", "asks"), [(True, True), (False, True), (True, False)])
def test_what_is_written_has_none_of_the_traps_and_is_read_by_its_kubernetes(minor, name, packs, asks) -> None:
    of = Kubernetes(1, minor)
    config = parsed(text(kubernetes=of, name=name, packs=packs, asks=asks))
    assert traps(config, of) == []
    assert ("extenders" in config) is asks


def test_a_second_scheduler_has_a_name_a_lease_and_an_account_of_its_own() -> None:
    config = parsed(text(name="gpu"))
    assert config["profiles"] == [{"schedulerName": "gpu"}]
    assert config["leaderElection"] == {"leaderElect": True, "resourceName": "gpu"}
    assert "clientConnection" not in config


def test_packing_gives_more_to_a_fuller_node_by_the_resources_that_are_asked_for() -> None:
    (profile,) = parsed(text(packs=True, asks=False, resources=("amd.com/gpu",)))["profiles"]
    assert profile["schedulerName"] == "default-scheduler"
    strategy = profile["pluginConfig"][0]["args"]["scoringStrategy"]
    assert strategy["requestedToCapacityRatio"]["shape"] == [
        {"utilization": 0, "score": 0},
        {"utilization": 100, "score": 10},
    ]
    assert {entry["name"]: entry["weight"] for entry in strategy["resources"]} == {
        "amd.com/gpu": 100,
        "cpu": 1,
        "memory": 1,
    }


def test_the_address_and_the_resources_are_those_that_are_given() -> None:
    config = parsed(text(url="https://10.0.0.7:8443/scheduler", resources=("nvidia.com/mig-1g.5gb",)))
    (extender,) = config["extenders"]
    assert extender["urlPrefix"] == "https://10.0.0.7:8443/scheduler"
    assert extender["managedResources"] == [{"name": "nvidia.com/mig-1g.5gb", "ignoredByScheduler": False}]


def test_the_extender_is_that_of_the_namespace_that_is_given() -> None:
    config = text(namespace="gpu-ops")
    assert parsed(config)["extenders"][0]["tlsConfig"]["serverName"] == "remediator-extender.gpu-ops.svc"
    assert "kubectl -n gpu-ops get service" in config
    assert "NAMESPACE" not in text()


@pytest.mark.parametrize(
    ("minor", "words", "said"),
    [
        (28, "may wait for five", True),
        (29, "may wait for five", False),
        (34, "Pods that are alike", False),
        (35, "Pods that are alike", True),
    ],
)
def test_a_comment_says_what_this_kubernetes_does(minor: int, words: str, said: bool) -> None:
    assert (words in text(kubernetes=Kubernetes(1, minor))) is said
    assert words not in text(kubernetes=Kubernetes(1, minor), packs=True, asks=False)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"url": "http://10.0.0.1/x"}, "--url is 'http://10.0.0.1/x', not https://ADDRESS:PORT/PATH"),
        ({"url": "https://a b"}, "--url is"),
        ({"url": "https://a\n- x: 1"}, "--url is"),
        ({"url": "https://"}, "--url is"),
        ({"name": "GPU"}, "--scheduler-name is 'GPU'"),
        ({"resources": ("gpu",)}, "--resource is 'gpu', not a resource such as nvidia.com/gpu"),
        ({"namespace": "a b"}, "--namespace is 'a b', not a namespace such as remediator-system"),
        ({"asks": False}, "--no-extender leaves nothing to write; add --pack"),
        ({"asks": False, "packs": True, "shares": True}, "--shared-gpus is for the extender; leave out --no-extender"),
        (
            {"resources": ("aliyun.com/gpu-mem",)},
            "--resource is 'aliyun.com/gpu-mem', whose Pods the extender must bind, too; write --shared-gpus",
        ),
        ({"kubernetes": Kubernetes(1, 21)}, "1.21 is older than 1.22"),
    ],
)
def test_what_cannot_be_written_is_refused_with_the_option(wanted: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(words)}"):
        text(**wanted)


@pytest.mark.parametrize("version", ["v1.31.2", "1.31", "1.31.2-eks-1234", "1.31+"])
def test_a_version_may_have_all_that_clusters_say(version: str) -> None:
    assert kubernetes(version) == Kubernetes(1, 31)


@pytest.mark.parametrize("version", ["", "1", "one", "1.x", "1.31."])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match="is no version of Kubernetes; write one such as"):
        kubernetes(version)


def test_the_shipped_file_for_shared_gpus_is_what_is_written() -> None:
    file = SHIPPED.parents[1] / "shared-gpus" / "scheduler-config.yaml"
    assert file.read_text() == text(shares=True)


@pytest.mark.parametrize("score", Score)
@pytest.mark.parametrize("of", [Kubernetes(1, 22), NEW])
def test_who_binds_may_not_be_ignored_and_who_only_looks_at_health_may(score: Score, of: Kubernetes) -> None:
    config = parsed(text(kubernetes=of, shares=True, score=score, url="https://h:1/a/scheduler/", namespace="ours"))
    looks, binds = config["extenders"]
    assert [each["ignorable"] for each in (looks, binds)] == [True, False]
    assert [each.get("bindVerb") for each in (looks, binds)] == [None, "bind"]
    assert binds["urlPrefix"] == "https://h:1/a/gpushare-scheduler", "as gpushare's own"
    assert binds["managedResources"] == [{"name": "aliyun.com/gpu-mem", "ignoredByScheduler": False}]
    assert (binds["preemptVerb"], binds["weight"], binds["tlsConfig"]) == (
        "preempt",
        looks["weight"],
        looks["tlsConfig"],
    )
    assert traps(config, of, score) == []
