"""The power-cycle program with all that its Pod would give it."""

from tests.harness.apiserver import NODE, change
from tests.harness.objects import BOOT
from tests.operations.conftest import Program
from tests.operations.fake_bmc import mounted

OURS = {"caseUID": "case-1", "offSeconds": "0", "waitSeconds": "10"}
TAINT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


def machine(uuid):
    """Return what gives the node this system UUID."""
    return change(NODE, "status", nodeInfo={"bootID": BOOT, "systemUUID": uuid})


def volume(name, node="gpu-1"):
    """A volume that is attached to a node."""
    spec = {"attacher": "csi.example", "nodeName": node, "source": {"persistentVolumeName": name}}
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment"}
    return kind | {"metadata": {"name": name}, "spec": spec}


class Cycle:
    """The program with what its Pod would give it: `entry` is the Secret of gpu-1, `shared` the ConfigMap of all."""

    def __init__(self, folder, api, bmc):
        self.program = Program(folder, "power_cycle")
        self.folder = folder / "bmc"
        self.folder.mkdir()
        self.program.variables |= api.environment()
        self.program.variables |= {"ATTEMPT_ID": "op-1", "EXPECTED_BOOT_ID": BOOT, "BMC_DIR": str(self.folder)}
        self.entry(**bmc.entry())

    def entry(self, **entry):
        mounted(self.folder / "node", **entry)

    def shared(self, **entry):
        mounted(self.folder / "shared", **entry)

    def start(self, *options, **more):
        return self.program.start(*options, parameters=OURS | more)

    def __call__(self, *options, **more):
        return self.program(*options, parameters=OURS | more)
