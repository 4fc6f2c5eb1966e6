"""What programs do on each host, whose tree of files is recorded: what the table of hosts says, and by its tools."""

import shutil

import pytest

from nodelib.host.driver import libraries, roots, smi_of_node
from nodelib.host.root import within
from nodelib.host.system import FOLDERS, node_system
from nodelib.k8s.kubelet_config import USUAL, find
from nodelib.net.runtimes import SOCKETS
from remediator.core.hosts import HOSTS, HostKind
from tests.harness.host_trees import TREES
from tests.operations.scripted import Node, answer

UNIT = "MainPID=7\nLoadState={}\nActiveState={}\nKillMode=process\n"
# The operations whose programs look at the host, and what each is given.
PROGRAMS = {
    "reboot": ("reboot", {}),
    "restart-service": ("restart_service", {"service": "chronyd"}),
    "restart-kubelet": ("restart_service", {"service": "kubelet"}),
    "restart-runtime": ("restart_service", {"service": "runtime"}),
    "reload-driver": ("reload_driver", {}),
    "kill-orphaned-processes": ("kill_orphaned_processes", {}),
    "remount-nfs": ("remount_nfs", {}),
    "clear-disk": ("clear_disk", {}),
}
MOUNT = "36 1 0:50 / /data rw,relatime - nfs4 10.0.0.9:/data rw,vers=4.2,addr=10.0.0.9\n"


def host(folder, kind, program):
    """A node of this kind, of which only the services are loaded that it has, and on which every command works."""
    node, tree = Node(folder, program), TREES[kind]
    tree.build(node.root / "proc/1/root")
    (node.root / "proc/1/mountinfo").write_text(MOUNT)
    (node.root / "proc/modules").write_text("nvidia 1 0 - Live 0x0\n")
    loaded = [
        answer(f"systemctl show {_FIELDS} {name}.service", UNIT.format("loaded", "active")) for name in units(kind)
    ]
    absent = answer("systemctl show", UNIT.format("not-found", "inactive").replace("7", "0"))
    node.answers(*loaded, absent, answer("df", "used avail target\n1 9 /"), answer("stat", "nfs"))
    return node


_FIELDS = "--property=LoadState,ActiveState,MainPID,KillMode"


def units(kind):
    return {*TREES[kind].units, "chronyd"} if TREES[kind].units[0] else set()


@pytest.mark.parametrize("operation", PROGRAMS)
@pytest.mark.parametrize("kind", TREES)
def test_a_program_refuses_a_host_where_the_table_says_so_and_names_it(tmp_path, kind, operation):
    program, given = PROGRAMS[operation]
    ran = host(tmp_path, kind, program).program("--dry-run", parameters=given)
    name = node_system(tmp_path / "host/proc").name
    if operation in HOSTS[kind].refused:
        assert ran.code == 2, ran.out
        assert f"refused: this node runs {name}, which " in ran.out
        assert ": " in ran.out.partition(name)[2], "with what helps"
    else:
        assert "this node runs" not in ran.out
        assert ran.code == 0 or program in ("reload_driver", "kill_orphaned_processes"), ran.out  # need a real /proc


@pytest.mark.parametrize("kind", [kind for kind in TREES if TREES[kind].units[0]])
@pytest.mark.parametrize(("word", "index"), [("runtime", 0), ("kubelet", 1)])
def test_runtime_and_kubelet_mean_the_units_of_the_host(tmp_path, kind, word, index):
    ran = host(tmp_path, kind, "restart_service").program("--dry-run", parameters={"service": word})
    assert (ran.code, ran.out.splitlines()[-1]) == (0, f"would restart {TREES[kind].units[index]}, which is active")


def test_talos_is_rebooted_by_the_kernel_and_all_others_by_systemd(tmp_path):
    for kind in TREES:
        folder = tmp_path / kind
        folder.mkdir()
        node = host(folder, kind, "reboot")
        (node.root / "proc/sysrq-trigger").touch()
        said = node.program("--dry-run").out
        assert ("write s, u and b to" in said, "systemctl reboot" in said) == (
            (True, False) if kind is HostKind.TALOS else (False, True)
        ), kind


@pytest.mark.parametrize(
    ("parameters", "code", "words"),
    [
        (
            {},
            2,
            'refused: this node runs Void Linux, which has no systemd to ask: let the kernel do it, by PARAMETERS {"la',
        ),
        ({"lastResort": "sysrq"}, 0, "sysrq-trigger: Void Linux has no systemd to ask"),
    ],
)
def test_a_system_that_nobody_knows_and_that_has_no_systemd_is_rebooted_by_the_kernel_only_where_it_is_declared(
    tmp_path, parameters, code, words
):
    node = host(tmp_path, HostKind.TALOS, "reboot")
    (node.root / "proc/1/root/etc/os-release").write_text('ID=void\nPRETTY_NAME="Void Linux"\n')
    ran = node.program("--dry-run", parameters=parameters)
    assert (ran.code, words in ran.out) == (code, True), ran.out


def test_a_node_whose_run_folder_cannot_be_looked_into_is_not_without_systemd_or_a_program(tmp_path):
    node = host(tmp_path, HostKind.TALOS, "reboot")
    root = node.root / "proc/1/root"
    folders = ("run/systemd", *FOLDERS)
    for path in folders:
        shutil.rmtree(root / path, ignore_errors=True)
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).unlink(missing_ok=True)
        (root / path).symlink_to(f"/{path}")  # goes round in circles: any failure that does not say "not there"
    assert not node_system(node.root / "proc").lacks_systemd
    assert not node_system(node.root / "proc").lacks_program("ls")
    assert "systemctl reboot" in node.program("--dry-run").out


def test_a_reboot_by_the_kernel_writes_s_u_and_b_and_asks_no_program_of_the_node(tmp_path, monkeypatch):
    import reboot

    node = host(tmp_path, HostKind.TALOS, "reboot")
    trigger = node.root / "proc/sysrq-trigger"
    trigger.touch()
    monkeypatch.setattr(reboot, "PAUSE", 0)
    monkeypatch.setattr(reboot, "LAST_SECONDS", 0)
    monkeypatch.setattr(reboot, "ask_for_reboot", lambda: pytest.fail("nobody is there to be asked"))
    environment = reboot.Environment(
        node="gpu-1",
        attempt="op-uid.1",
        expected_boot_id=node.program.variables["EXPECTED_BOOT_ID"],
        parameters={},
        termination_log=str(tmp_path / "log"),
        token_dir="",
        host_root=str(node.root),
    )
    with pytest.raises(reboot.Failed, match=r"Talos .v1.11.2. has no systemd to ask; sysrq was written"):
        reboot.reboot(environment, dry_run=False)
    assert trigger.read_text() == "sub"
    assert (node.root / "run/remediator/op-uid.1").exists()
    assert (tmp_path / "log").read_text() == "reboot of gpu-1 by sysrq: Talos (v1.11.2) has no systemd to ask"


@pytest.mark.parametrize("kind", TREES)
def test_the_socket_the_kubeconfig_and_the_driver_of_each_host_are_found(tmp_path, kind):
    tree, proc = TREES[kind], tmp_path / "proc"
    root = proc / "1/root"
    tree.build(root)
    assert [path for path in SOCKETS if within(root, path).exists()] == [f"/{tree.socket}"]
    known = f"/{tree.kubeconfig}" in USUAL
    assert find(proc, root) == (f"/{tree.kubeconfig}" if known else "")
    assert known or kind is HostKind.BOTTLEROCKET, "there the kubelet's command line says it"
    assert " ".join(smi_of_node(proc)) == tree.smi
    assert [folder for folder in roots(proc, None) if (folder / tree.nvml.removeprefix("run/nvidia/driver/")).exists()]
    (within(root, tree.nvml) / "libnvidia-ml.so.1").unlink()
    (within(root, tree.nvml) / "libnvidia-ml.so.580.82.07").touch()
    (within(root, tree.nvml) / "libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.580.82.07")
    assert set(libraries(roots(proc, None)).values()) == {"580.82.07"}


@pytest.mark.parametrize("release", [None, "", "garbage\0=\n", "NAME=x\n"], ids=["none", "empty", "garbage", "no ID"])
def test_a_host_that_does_not_say_what_it_is_is_refused_nothing(tmp_path, release):
    node = host(tmp_path, HostKind.TALOS, "restart_service")
    file = node.root / "proc/1/root/etc/os-release"
    file.unlink() if release is None else file.write_text(release)
    assert node_system(node.root / "proc") is None
    ran = node.program("--dry-run", parameters={"service": "kubelet"})
    assert "refused: kubelet.service is not-found on this node" in ran.out
