"""Detectors and operations share contracts with the controller, never code: each runs alone and explains itself."""

import ast
import compileall
import json
import os
import re
import runpy
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from nodelib.forks import ask
from nodelib.state import slots
from remediator.kube.api.template import Drain, NodeOperationTemplate, NodeOperationTemplateSpec, Success
from tests.detectors.node import program_of
from tests.harness import node_programs, yaml_files

ROOT = Path(__file__).resolve().parents[2]
DETECTORS, OPERATIONS, NODELIB = ROOT / "detectors", ROOT / "operations", ROOT / "nodelib"
WATCHDOG = ROOT / "watchdog"
BOOTSTRAP = """
import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out
"""
IMAGE = "/opt/remediator"


def programs(folder):
    return sorted(folder.glob("*.py"))


def templates():
    return sorted(path for path in OPERATIONS.glob("*.yaml") if path.name != "kustomization.yaml")


def monitors():
    return sorted((ROOT / "deploy/npd").glob("*.json"))


def named(path):
    return path.name


def pod_spec(path):
    return yaml_files.read(path)["spec"]["podTemplate"]["spec"]


def seconds(duration):
    """Read a Go duration of one unit."""
    number, unit = re.fullmatch(r"([0-9.]+)(ms|s|m|h)", duration).groups()
    return float(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit]


def option(arguments, name):
    """Return the value of --NAME=VALUE."""
    return next(one.partition("=")[2] for one in arguments if one.startswith(f"--{name}="))


def modules(path):
    """What a file imports, and what it takes from there: some of it are modules of a package."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module or "", *(f"{node.module}.{name.name}" for name in node.names))


def imports(path):
    return {name.partition(".")[0] for name in modules(path)}


@pytest.mark.parametrize("folder", [DETECTORS, OPERATIONS, WATCHDOG, NODELIB], ids=named)
def test_what_runs_on_a_node_imports_the_standard_library_pynvml_and_nodelib_only(folder):
    for path in folder.rglob("*.py"):
        strangers = imports(path) - set(sys.stdlib_module_names) - {"nodelib", "pynvml"}
        assert not strangers, f"{path.name} imports {sorted(strangers)}"


@pytest.mark.parametrize("folder", [DETECTORS, OPERATIONS, WATCHDOG], ids=named)
def test_the_folders_of_programs_hold_programs_only(folder):
    assert programs(folder)
    known = {*programs(folder), *folder.glob("*.yaml"), folder / "__pycache__"}
    assert set(folder.iterdir()) <= known
    for path in programs(folder):
        assert re.match(r'#!.*\n"""', path.read_text())
        assert path.read_text().count(BOOTSTRAP) == 1


def test_no_module_of_nodelib_hides_one_of_the_standard_library():
    """Two of them are programs, too: what lies beside such a file would be imported in the place of its namesake."""
    assert [path for path in NODELIB.rglob("*.py") if path.stem in sys.stdlib_module_names] == []


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("-I", "-S")], ids=["", "-I -S"])
def test_a_program_finds_nodelib_by_a_relative_path_an_absolute_one_and_a_link_from_any_folder(flags, tmp_path):
    (tmp_path / "linked.py").symlink_to(DETECTORS / "gpu_ecc.py")
    (tmp_path / "folder").symlink_to(DETECTORS)
    for words, cwd in (
        ("detectors/gpu_ecc.py", ROOT),
        ("gpu_ecc.py", DETECTORS),
        ("../detectors/gpu_ecc.py", OPERATIONS),
        (DETECTORS / "gpu_ecc.py", tmp_path),
        ("linked.py", tmp_path),
        ("folder/gpu_ecc.py", tmp_path),
    ):
        command = [sys.executable, *flags, "-B", words, "--help"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=cwd, check=True)
        assert done.stdout.startswith("usage: ")


@pytest.fixture(scope="module")
def hostile_copy(tmp_path_factory):
    """The programs, and beside nodelib/ namesakes of modules of the standard library."""
    copy = tmp_path_factory.mktemp("hostile")
    for folder in (DETECTORS, OPERATIONS, WATCHDOG, NODELIB):
        shutil.copytree(folder, copy / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("argparse", "contextlib", "json", "signal", "subprocess", "typing"):
        (copy / f"{name}.py").write_text("raise SystemExit('a namesake was imported')\n")
    compileall.compile_dir(copy, quiet=1)  # once, and not at each start of a program
    return copy


def also_programs():
    return [path for path in NODELIB.rglob("*.py") if "sys.path.append(os.path.realpath" in path.read_text()]


@pytest.mark.sampled
@pytest.mark.parametrize(
    "path", [*programs(DETECTORS), *programs(OPERATIONS), *programs(WATCHDOG), *also_programs()], ids=named
)
def test_what_lies_beside_nodelib_is_not_imported_in_the_place_of_the_standard_library(path, hostile_copy, tmp_path):
    command = [sys.executable, "-I", "-S", "-B", hostile_copy / path.relative_to(ROOT), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=tmp_path)
    assert "namesake" not in done.stderr


def test_a_child_program_of_nodelib_is_among_those_that_are_tried():
    names = ["chassis_child.py", "serve.py", "start.py", "device_users.py", "ethtool.py", "child.py"]
    assert [path.name for path in sorted(also_programs())] == names


@pytest.mark.sampled
@pytest.mark.parametrize("path", programs(DETECTORS) + programs(OPERATIONS), ids=named)
def test_every_program_can_be_executed_and_explains_itself(path, tmp_path):
    assert path.stat().st_mode & stat.S_IXUSR
    flags = ["-I", "-S"] if path.parent == OPERATIONS else ["-E", "-s", "-S"]
    done = subprocess.run(
        [sys.executable, *flags, "-B", str(path), "--help"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
    )
    assert done.stdout.startswith("usage: ")
    assert ast.get_docstring(ast.parse(path.read_text())).splitlines()[0] in done.stdout
    assert ("--dry-run" in done.stdout) is (path.parent == OPERATIONS)


ASKED_NOTHING = {"network_path"}  # has nothing to read before a user has named a target or a limit


@pytest.mark.sampled
@pytest.mark.parametrize("path", [path for path in programs(DETECTORS) if path.stem not in ASKED_NOTHING], ids=named)
def test_a_detector_on_a_machine_where_it_can_read_nothing_says_so_in_one_line(path, tmp_path):
    told = node_programs.run([str(path), "--help"]).out
    known = [name for name in ("state", "proc", "sys", "dev") if f"--{name} " in told]
    assert {"state", "proc"} <= set(known)
    options = [f"--{name}={tmp_path / name}" for name in known]
    done = node_programs.run(
        [str(path), *options], {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    )
    assert done.code == 2
    assert len(done.out.splitlines()) == 1
    assert done.out.isascii()
    assert len(done.out) <= 512
    assert "Traceback" not in done.err


# What node-problem-detector reads; it ignores any other key without a word.
MONITOR_KEYS = {"plugin", "pluginConfig", "source", "metricsReporting", "conditions", "rules"}
CONFIG_KEYS = {
    "invoke_interval",
    "timeout",
    "max_output_length",
    "concurrency",
    "enable_message_change_based_condition_update",
    "skip_initial_status",
}
CONDITION_KEYS, RULE_KEYS = {"type", "reason", "message"}, {"type", "condition", "reason", "path", "args", "timeout"}


@pytest.mark.parametrize("path", monitors(), ids=named)
def test_a_monitor_has_one_rule_one_condition_and_no_key_that_would_be_ignored(path):
    monitor = json.loads(path.read_text())
    [condition], [rule] = monitor["conditions"], monitor["rules"]
    assert set(monitor) == MONITOR_KEYS
    assert set(monitor["pluginConfig"]) == CONFIG_KEYS
    assert set(condition) == CONDITION_KEYS
    assert set(rule) == RULE_KEYS
    assert (monitor["plugin"], rule["type"]) == ("custom", "permanent")
    assert rule["condition"] == condition["type"]
    assert rule["reason"] != condition["reason"]


@pytest.mark.parametrize("path", monitors(), ids=named)
def test_a_monitor_starts_silent_and_runs_its_detector_alone_and_in_time(path):
    monitor = json.loads(path.read_text())
    config, [rule] = monitor["pluginConfig"], monitor["rules"]
    assert config["skip_initial_status"] is True
    assert config["concurrency"] == 1
    assert config["max_output_length"] == 512
    assert seconds(rule["timeout"]) <= seconds(config["timeout"])


@pytest.mark.parametrize("path", monitors(), ids=named)
def test_a_monitor_runs_the_detector_that_documents_its_condition(path):
    [rule] = json.loads(path.read_text())["rules"]
    program = program_of(rule)
    assert rule["path"] == f"{IMAGE}/nodelib/forks/start.py"
    assert program in programs(DETECTORS)
    assert ast.get_docstring(ast.parse(program.read_text())).startswith(f"Condition {rule['condition']}: ")
    known = node_programs.run([str(program), "--help"]).out
    for argument in rule["args"][1:]:
        assert argument.partition("=")[0] in known


def test_every_detector_has_one_monitor_and_every_condition_one_rule():
    rules = [json.loads(path.read_text())["rules"][0] for path in monitors()]
    assert sorted(program_of(rule).name for rule in rules) == [path.name for path in programs(DETECTORS)]
    assert len({rule["condition"] for rule in rules}) == len(rules)


def test_the_files_of_node_problem_detector_and_the_lists_of_them_are_those_of_the_table():
    made = runpy.run_path(str(ROOT / "deploy/npd/generate.py"))["files"]()
    assert [path.name for path, text in made.items() if not path.exists() or path.read_text() != text] == []
    assert {path for path in made if path.suffix == ".json"} == set(monitors())


@pytest.mark.parametrize("path", monitors(), ids=named)
def test_what_hangs_is_told_of_before_node_problem_detector_gives_up_even_by_who_has_waited_for_its_turn(path):
    [rule] = json.loads(path.read_text())["rules"]
    deadline = float(option([*rule["args"], "--deadline=0"], "deadline"))
    turn = max(ask.STARTING + 2 * ask.SOON, ask.LATEST) + slots.PATIENCE  # by itself, once the shared process is silent
    gives_up_after = 5.2  # seconds that a child has between SIGTERM and the time after SIGKILL
    assert turn == 12
    assert turn + deadline + gives_up_after * bool(deadline) < seconds(rule["timeout"])


def test_detector_stale_knows_every_other_detector_and_its_interval():
    found = {path.stem: json.loads(path.read_text()) for path in monitors()}
    declared = found.pop("detector-stale")["rules"][0]["args"]
    wanted = [
        f"--detector={one['rules'][0]['args'][0]}={seconds(one['pluginConfig']['invoke_interval']):g}"
        for one in found.values()
    ]
    assert sorted(declared) == sorted(["detector_stale", *wanted])


def test_every_operation_has_one_template_beside_it_of_its_own_name():
    assert [path.stem for path in templates()] == [path.stem for path in programs(OPERATIONS)]
    for path in templates():
        template = yaml_files.read(path)
        assert (template["apiVersion"], template["kind"]) == ("remediator.dev/v1alpha1", "NodeOperationTemplate")
        assert template["metadata"]["name"] == path.stem.replace("_", "-")
        msgspec.convert(template, NodeOperationTemplate)
        for part, kind in (
            (template["spec"], NodeOperationTemplateSpec),
            (template["spec"]["drain"], Drain),
            (template["spec"].get("success", {}), Success),
        ):
            assert set(part) <= {field.encode_name for field in msgspec.structs.fields(kind)}


@pytest.mark.parametrize("path", templates(), ids=named)
def test_a_template_runs_the_program_beside_it_as_bare_as_possible(path):
    [container] = pod_spec(path)["containers"]
    assert container["command"] == ["python3", "-I", "-S", f"{IMAGE}/operations/{path.stem}.py"]
    assert (path.with_suffix(".py")).exists()
    assert pod_spec(path)["restartPolicy"] == "Never"


def declared_env(path):
    """The variables that a template itself gives its container, those with a plain value."""
    [container] = pod_spec(path)["containers"]
    return {one["name"]: one["value"] for one in container.get("env", ()) if "value" in one}


def is_privileged(spec):
    risky = any(spec.get(name) for name in ("hostPID", "hostNetwork", "hostIPC"))
    mounts = any("hostPath" in volume for volume in spec.get("volumes", ()))
    contexts = [container.get("securityContext", {}) for container in spec["containers"]]
    added = any(one.get("privileged") or one.get("capabilities", {}).get("add") for one in contexts)
    return risky or mounts or added


@pytest.mark.parametrize("path", templates(), ids=named)
def test_a_pod_holds_a_token_or_privileges_and_never_both(path):
    spec = pod_spec(path)
    assert spec["automountServiceAccountToken"] is not is_privileged(spec)
    account = "remediator-host" if is_privileged(spec) else f"remediator-{path.stem.replace('_', '-')}"
    assert spec["serviceAccountName"] == account


@pytest.mark.parametrize("path", templates(), ids=named)
def test_a_pod_with_a_token_runs_elsewhere_and_may_do_nothing_to_its_host(path):
    spec, template = pod_spec(path), yaml_files.read(path)["spec"]
    if is_privileged(spec):
        assert template["runOn"] == "Target"
        return
    context = spec["containers"][0]["securityContext"]
    assert template["runOn"] == "Elsewhere"
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert context["readOnlyRootFilesystem"] is True
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}


def test_a_reboot_drains_first_and_is_believed_only_by_another_boot_id():
    template = yaml_files.read(OPERATIONS / "reboot.yaml")["spec"]
    assert template["drain"]["strategy"] == "Evict"
    assert template["success"] == {"bootIDChanged": True, "nodeReady": True}


@pytest.mark.parametrize("name", ["reset_gpu", "remount_nfs"])
def test_a_repair_that_looks_again_drains_first_and_its_exit_code_is_the_outcome(name):
    template = yaml_files.read(OPERATIONS / f"{name}.yaml")["spec"]
    assert template["drain"]["strategy"] == "Evict"
    assert "success" not in template
    assert pod_spec(OPERATIONS / f"{name}.yaml")["hostPID"] is True


def test_what_enters_the_node_starts_though_the_nodes_network_is_what_is_broken():
    """A kubelet without a network for Pods starts only those that want the node's own."""
    enters = {path.stem for path in templates() if pod_spec(path).get("hostPID")}  # nsenter needs the pids
    assert {"reboot", "collect_diagnostics", "restart_service", "remount_nfs"} <= enters
    assert {path.stem for path in templates() if pod_spec(path).get("hostNetwork")} == enters
    assert not any(one.get("ports") for path in templates() for one in pod_spec(path)["containers"])


def test_processes_of_pods_are_ended_only_by_templates_that_drain():
    declared = {path.stem: declared_env(path).get("DRAINED") for path in templates()}
    assert {name for name, drained in declared.items() if drained} == {"reset_gpu", "reload_driver"}
    for name in ("reset_gpu", "reload_driver"):
        template = yaml_files.read(OPERATIONS / f"{name}.yaml")["spec"]
        assert (template["drain"]["strategy"], declared[name]) == ("Evict", "true")


def test_looking_at_a_node_disturbs_nothing_on_it():
    template = yaml_files.read(OPERATIONS / "collect_diagnostics.yaml")["spec"]
    spec = pod_spec(OPERATIONS / "collect_diagnostics.yaml")
    assert template["drain"] == {"strategy": "None"}
    assert "priorityClassName" not in spec
    assert all(mount["readOnly"] for mount in spec["containers"][0]["volumeMounts"])
