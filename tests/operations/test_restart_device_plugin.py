"""The restart-device-plugin program against an API server over HTTPS."""

import pytest

from nodelib.k8s.mig_manager import is_news
from tests.harness.apiserver import NODE, OPERATION, change
from tests.harness.objects import AFTER, BEFORE, CASE_TAINT, MADE, daemon_pod, daemon_set, renewed_later
from tests.operations.conftest import Program

pytestmark = pytest.mark.sampled("restart device plugin")

PLUGIN = "nvidia-device-plugin-daemonset"
MPS = "nvidia-device-plugin-mps-control-daemon"
OLD, NEW = "plugin-old", "plugin-old-new"
OLD_POD, PLUGIN_SET = ("pods", "gpu-operator", OLD), ("daemonsets.apps", "gpu-operator", PLUGIN)


@pytest.fixture
def api(api):
    """The API server with the GPU operator's device plugin on gpu-1, next to other DaemonSets."""
    api.replace = renewed_later
    api.put(
        daemon_set(PLUGIN, "gpu-operator"),
        daemon_set(MPS),
        daemon_pod(OLD, PLUGIN, "gpu-operator"),
        daemon_pod("plugin-elsewhere", PLUGIN, "gpu-operator", node="gpu-2"),
        daemon_pod("mps", MPS),
    )
    return api


@pytest.fixture
def restart(tmp_path, api):
    """The program, told of `api`, for case-1; more PARAMETERS by name."""
    program = Program(tmp_path, "restart_device_plugin")
    program.variables |= api.environment() | {"ATTEMPT_ID": "op-1"}
    program.variables["EXPECTED_BOOT_ID"] = ""
    return lambda *options, **more: program(*options, parameters={"caseUID": "case-1", "waitSeconds": "20"} | more)


def test_the_nodes_pod_goes_and_the_new_one_is_waited_for(api, restart):
    api.replace = lambda pod: None

    def the_new_pod_becomes_ready_later(method, path):
        if api.deleted and len(api.requests) > 12 and not any(pod["metadata"]["name"] == NEW for pod in api.pods):
            api.put(daemon_pod(NEW, PLUGIN, "gpu-operator", created=AFTER))

    api.on_request = the_new_pod_becomes_ready_later
    ran = restart()
    assert ran.code == 0, ran.out
    assert ran.message == (
        f"restarted the device plugin of gpu-1: Pod gpu-operator/{NEW} is Ready in place of gpu-operator/{OLD}"
    )
    assert api.deleted == [OLD]


def test_a_second_start_finds_a_pod_that_is_younger_than_the_attempt_and_deletes_nothing(api, restart):
    assert restart().code == 0
    ran = restart()
    assert ran.code == 0
    assert ran.message == f"nothing to restart: Pod gpu-operator/{NEW} is Ready and younger than attempt op-1"
    assert api.deleted == [OLD]


def test_a_pod_of_the_very_second_of_the_attempt_is_young_enough(api, restart):
    change(OLD_POD, "metadata", creationTimestamp=MADE)(api)
    assert restart().code == 0
    assert api.deleted == []


def test_a_clock_that_lags_at_one_api_server_does_not_make_it_delete_twice(api, restart):
    api.replace = lambda pod: daemon_pod(f"{pod['metadata']['name']}-new", PLUGIN, "gpu-operator", created=BEFORE)
    assert restart().code == 0
    assert api.deleted == [OLD]


def test_a_second_start_waits_for_a_pod_that_is_still_to_come(api, restart):
    api.remove(*OLD_POD)

    def it_comes(method, path):
        if len(api.requests) == 10:
            api.put(daemon_pod(NEW, PLUGIN, "gpu-operator", created=AFTER))

    api.on_request = it_comes
    assert restart().code == 0
    assert api.deleted == []


def test_only_the_pod_that_was_read_is_deleted(api, restart):
    versions = [api.get(*OLD_POD)["metadata"]["resourceVersion"]]

    def it_changes(method, path):
        if method == "DELETE" and len(versions) == 1:
            change(OLD_POD, "metadata", labels={"seen": "later"})(api)
            versions.append(api.get(*OLD_POD)["metadata"]["resourceVersion"])

    api.on_request = it_changes
    ran = restart()
    assert ran.code == 0, ran.out
    assert [path for method, path, _ in api.requests if method == "DELETE"].count(
        f"/api/v1/namespaces/gpu-operator/pods/{OLD}"
    ) == 2
    preconditions = [body["preconditions"] for method, _, body in api.requests if method == "DELETE"]
    assert preconditions == [{"uid": f"uid-{OLD}", "resourceVersion": version} for version in versions]


def test_a_new_pod_that_does_not_become_ready_is_a_failure_that_says_why(api, restart):
    bad = daemon_pod(NEW, PLUGIN, "gpu-operator", created=AFTER, ready="False")
    bad["status"]["containerStatuses"] = [{"name": "ctr", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
    api.replace = lambda pod: bad
    ran = restart(waitSeconds=2)
    assert (ran.code, api.deleted) == (1, [OLD])
    assert ran.message == (
        f"failed: device plugin of gpu-1 after 2 s: the new Pod gpu-operator/{NEW} is not Ready: ctr CrashLoopBackOff"
    )


def test_an_old_pod_that_does_not_end_is_a_failure_and_is_asked_only_once(api, restart):
    api.ends_pods = False
    ran = restart(waitSeconds=1)
    assert (ran.code, api.deleted) == (1, [OLD])
    assert ran.message == f"failed: device plugin of gpu-1 after 1 s: Pod gpu-operator/{OLD} is still ending"


def test_no_such_daemon_set_is_refused_with_the_names_that_were_looked_for(api, restart):
    api.remove(*PLUGIN_SET)
    ran = restart(daemonSet="my-plugin")
    assert (ran.code, api.writes()) == (2, [])
    assert "no DaemonSet of any namespace is a device plugin called my-plugin" in ran.message
    assert "name yours in PARAMETERS.daemonSet" in ran.message


def test_where_no_device_plugin_is_known_nothing_was_done_and_that_is_refused_with_both_remedies(api, restart):
    api.remove(*PLUGIN_SET)
    ran = restart()
    assert (ran.code, api.writes()) == (2, [])
    assert ran.message.startswith(
        "nothing to do: no DaemonSet of any namespace is a device plugin called nvidia-device-plugin"
    )
    assert "name yours in PARAMETERS.daemonSet and PARAMETERS.namespace; where the node has none, nor" in ran.message
    assert ran.message.endswith("out of `after` of your template reset-gpu and out of your ladders")


@pytest.mark.parametrize("name", ["dra-driver-nvidia-gpu-kubelet-plugin", "gpus-nvidia-dra-driver-gpu-kubelet-plugin"])
def test_where_no_device_plugin_is_known_the_kubelet_plugin_of_the_dra_driver_is_restarted(api, restart, name):
    """It takes its taint off a device only when it starts. Beside a device plugin it does something else, and stays."""
    api.put(daemon_set(name, "dra"), daemon_pod("driver", name, "dra"))
    assert restart().code == 0
    assert api.deleted == [OLD]
    api.remove(*PLUGIN_SET)
    ran = restart()
    assert ran.code == 0, ran.out
    assert api.deleted == [OLD, "driver"]
    said = "restarted the kubelet plugin of the DRA driver of gpu-1: Pod dra/driver-new is Ready in place of dra/driver"
    assert ran.message == said


def test_several_with_a_pod_on_the_node_are_refused_by_name(api, restart):
    api.put(
        daemon_set("nvdp-nvidia-device-plugin", "plugins"), daemon_pod("other", "nvdp-nvidia-device-plugin", "plugins")
    )
    ran = restart()
    assert (ran.code, api.writes()) == (2, [])
    assert ran.message.endswith("gpu-operator/nvidia-device-plugin-daemonset, plugins/nvdp-nvidia-device-plugin")


def test_a_tenants_daemon_set_of_that_name_which_mounts_nothing_of_the_node_is_not_meant(api, restart):
    """It would have every restart refused: whoever has a namespace may run a DaemonSet of any name on GPU nodes."""
    own = api.get(*PLUGIN_SET)
    own["spec"]["template"]["spec"]["volumes"] = [
        {"name": "s", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}}
    ]
    mine = daemon_pod("mine", "x-nvidia-device-plugin", "team-a")
    api.put(own, daemon_set("x-nvidia-device-plugin", "team-a"), mine)
    ran = restart()
    assert ran.code == 0, ran.out
    assert api.deleted == [OLD]


def test_of_several_the_one_that_has_a_pod_on_the_node_is_meant(api, restart):
    api.put(*(daemon_set(f"nvidia-gpu-device-plugin-{size}") for size in ("small-cos", "large-cos")))
    api.put(daemon_pod("gke", "nvidia-gpu-device-plugin-large-cos", node="gpu-2"))
    assert restart().code == 0
    assert api.deleted == [OLD]


@pytest.mark.parametrize(
    "declared",
    [
        {"daemonSet": "my-plugin"},
        {"selector": "app=mine,tier==node"},
        {"namespace": "mine", "selector": "app=mine"},
    ],
)
def test_what_is_declared_is_taken_instead_of_the_usual_names(api, restart, declared):
    api.put(daemon_set("my-plugin", "mine", labels={"app": "mine", "tier": "node"}))
    api.put(daemon_pod("my-pod", "my-plugin", "mine"))
    ran = restart(**declared)
    assert ran.code == 0, ran.out
    assert api.deleted == ["my-pod"]


NVIDIAS = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


def test_one_with_nvidias_own_tolerations_comes_back_while_a_case_holds_the_node(api, restart):
    api.put(daemon_set(PLUGIN, "gpu-operator", tolerations=NVIDIAS))
    assert restart().message.startswith("restarted the device plugin of gpu-1")


@pytest.mark.parametrize(
    ("taint", "tolerations", "network", "kept"),
    [
        (("dedicated", "a", "NoSchedule"), NVIDIAS, False, True),
        (("dedicated", "a", "NoExecute"), [*NVIDIAS, {"key": "dedicated", "effect": "NoSchedule"}], False, True),
        (("dedicated", "a", "NoSchedule"), [{"key": "dedicated", "value": "b"}], False, True),
        (("dedicated", "5", "NoSchedule"), [{"key": "dedicated", "operator": "Lt", "value": "9"}], False, True),
        (("dedicated", "a", "NoSchedule"), [{"key": "dedicated", "value": "a"}], False, False),
        (("dedicated", "a", "NoSchedule"), [{"operator": "Exists", "effect": "NoSchedule"}], False, False),
        (("dedicated", "a", "PreferNoSchedule"), NVIDIAS, False, False),
        (("nvidia.com/gpu", "present", "NoSchedule"), NVIDIAS, False, False),
        # What the DaemonSet controller adds.
        (("node.kubernetes.io/not-ready", "", "NoExecute"), NVIDIAS, False, False),
        (("node.kubernetes.io/not-ready", "", "NoSchedule"), NVIDIAS, False, True),
        (("node.kubernetes.io/unschedulable", "", "NoSchedule"), NVIDIAS, False, False),
        (("node.kubernetes.io/network-unavailable", "", "NoSchedule"), NVIDIAS, False, True),
        (("node.kubernetes.io/network-unavailable", "", "NoSchedule"), NVIDIAS, True, False),
    ],
)
def test_a_taint_that_keeps_the_new_pod_off_for_good_is_refused(api, restart, taint, tolerations, network, kept):
    plugin = daemon_set(PLUGIN, "gpu-operator", tolerations=tolerations)
    plugin["spec"]["template"]["spec"]["hostNetwork"] = network
    api.put(plugin)
    change(NODE, "spec", taints=[CASE_TAINT, dict(zip(("key", "value", "effect"), taint, strict=True))])(api)
    ran = restart()
    assert (ran.code, api.deleted) == ((2, []) if kept else (0, [OLD])), ran.out
    said = f"the DaemonSet does not tolerate {taint[0]}:{taint[2]}, so no new Pod would come: add that toleration"
    assert (said in ran.message) is kept


@pytest.mark.parametrize(("now", "then", "code"), [("4", "3", 2), ("4", "4", 0), ("", "4", 2)])
def test_a_restart_that_would_bring_another_version_up_is_refused(api, restart, now, then, code):
    api.put(daemon_set(PLUGIN, "gpu-operator", strategy="OnDelete", generation=now))
    change(OLD_POD, "metadata", labels={"pod-template-generation": then})(api)
    ran = restart()
    assert ran.code == code, ran.out
    assert bool(api.deleted) is (code == 0)
    assert ("roll the DaemonSet out on this node first" in ran.message) is (code == 2)


def test_a_daemon_set_that_rolls_out_by_itself_may_bring_its_new_version(api, restart):
    api.put(daemon_set(PLUGIN, "gpu-operator", generation="9"))
    assert restart().code == 0


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (change(NODE, "spec", taints=[]), "node gpu-1 is not held by case case-1"),
        (change(NODE, "metadata", uid="another"), "is another one than was meant"),
        (change(OPERATION, "status", phase="Cancelled"), "operation op-1 has ended: Cancelled"),
        (change(OPERATION, "metadata", deletionTimestamp=AFTER), "operation op-1 is being deleted"),
        (change(OPERATION, "spec", nodeName="gpu-2"), "is not for node gpu-1 and case case-1"),
        (lambda api: api.ready("Unknown"), "the kubelet of gpu-1 does not report"),
    ],
)
def test_it_refuses_what_is_not_its_own_or_cannot_help(api, restart, spoil, words):
    spoil(api)
    ran = restart()
    assert (ran.code, api.writes()) == (2, [])
    assert words in ran.message


def test_a_claim_that_goes_before_the_pod_is_deleted_stops_it(api, restart):
    def a_person_takes_the_taint_away(method, path):
        if path.endswith("/daemonsets"):
            change(NODE, "spec", taints=[])(api)

    api.on_request = a_person_takes_the_taint_away
    assert restart().code == 2
    assert api.deleted == []


def test_an_api_server_that_stumbles_is_asked_again(api, restart):
    api.refuse(503, 503)
    assert restart().code == 0


def test_a_long_list_is_read_to_its_end(api, restart):
    api.put(*(daemon_set(f"agent-{n}") for n in range(120)))
    assert restart().code == 0
    assert api.deleted == [OLD]


def test_a_dry_run_names_the_pod_and_deletes_nothing(api, restart):
    meant = {"uid": f"uid-{OLD}", "resourceVersion": api.get(*OLD_POD)["metadata"]["resourceVersion"]}
    ran = restart("--dry-run")
    assert (ran.code, ran.message, api.writes()) == (0, "", [])
    assert ran.out.splitlines() == [
        f"would DELETE /api/v1/namespaces/gpu-operator/pods/{OLD} with {meant}",
        f"would delete Pod gpu-operator/{OLD} and wait for another of gpu-operator/{PLUGIN}",
    ]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"waitSeconds": "soon"}, "PARAMETERS.waitSeconds is 'soon': write a number from 1 to"),
        ({"waitSeconds": 0}, "PARAMETERS.waitSeconds is 0: write a number from 1 to"),
        ({"selector": "app in (a)"}, "PARAMETERS.selector is 'app in (a)': write label=value"),
        ({"daemonSet": ["a"]}, "PARAMETERS.daemonSet is ['a']: write it as text"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_by_name(api, restart, more, words):
    ran = restart(**more)
    assert (ran.code, api.requests) == (2, [])
    assert words in ran.message


MANAGER = "nvidia-mig-manager"
CONFIG, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"


@pytest.fixture
def mig(api):
    """A node whose label wishes for MIG devices, and its MIG manager; `states` are what this one says in turn."""
    api.put(daemon_set(MANAGER, "gpu-operator"), daemon_pod("manager", MANAGER, "gpu-operator"))
    states = []

    def says(method, path):
        if "manager" in api.deleted and states and path.endswith("/nodes/gpu-1"):
            change(NODE, "metadata", labels={CONFIG: "all-1g.10gb", STATE: states.pop(0)})(api)

    api.on_request = says
    change(NODE, "metadata", labels={CONFIG: "all-1g.10gb", STATE: "success"})(api)
    return states


def test_mig_devices_are_made_before_the_device_plugin_looks_for_them(api, restart, mig):
    mig += ["success", "success", "pending", "pending", "success"]
    ran = restart()
    assert (ran.code, api.deleted) == (0, ["manager", OLD]), ran.out
    assert ran.message.startswith(f"restarted the device plugin of gpu-1: Pod gpu-operator/{NEW} is Ready")
    assert ran.message.endswith("; MIG devices are as all-1g.10gb says")


@pytest.mark.parametrize(
    ("states", "says"),
    [
        (["success", "pending", "failed"], "no MIG devices as all-1g.10gb says: the MIG manager sets"),
        (["success", "pending"], f"no MIG devices as all-1g.10gb says after 2 s: {STATE} is pending"),
    ],
)
def test_a_mig_manager_that_is_not_done_is_a_failure_and_the_device_plugin_is_left_alone(
    api, restart, mig, states, says
):
    mig += states
    ran = restart(waitSeconds="2")
    assert (ran.code, api.deleted, says in ran.message) == (1, ["manager"], True), ran.message


@pytest.mark.parametrize("labels", [{}, {CONFIG: "all-disabled", STATE: "success"}])
def test_where_no_mig_devices_are_wished_for_the_mig_manager_is_left_alone(api, restart, mig, labels):
    change(NODE, "metadata", labels=labels)(api)
    assert (restart().code, api.deleted) == (0, [OLD])


def test_mig_devices_that_another_than_the_gpu_operator_makes_are_left_to_it(api, restart, mig):
    api.remove("daemonsets.apps", "gpu-operator", MANAGER)
    assert (restart().code, api.deleted) == (0, [OLD])


@pytest.mark.parametrize(
    ("state", "changed", "waited", "news"),
    [
        ("success", False, 1, False),  # it may have stood there before
        ("success", False, 31, True),
        ("success", True, 1, True),
        ("failed", True, 1, True),
        ("pending", True, 99, False),
    ],
)
def test_a_word_of_the_mig_manager_counts_when_it_is_new_or_has_stood_for_a_while(state, changed, waited, news):
    assert is_news(state, changed, waited) is news
