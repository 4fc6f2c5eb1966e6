"""What others have in that world: what they ask of us, a certificate that waits, the settings of tickets."""

import base64
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from tests.cluster.rights.asking import OTHER, SYSTEM, Object, named, patch
from tests.harness.benches import ROOT
from tests.remediator.controller.test_outside_requests import ERRS, MACHINES, crd

if TYPE_CHECKING:
    from tests.cluster.rights.world import World

KINDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REPAIRS = "/apis/requests.remediator.dev/v1alpha1/namespaces/team/noderepairs"
EXTERNAL = "/apis/nvsentinel.dgxc.nvidia.com/v1/externalremediationrequests"
NODE_LEASES = "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases"
SIGNING = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
OURS = ("requests/noderepairs", "requests/noderepairtemplates", "requests/rbac", "shared-gpus/rbac", "node-leases/rbac")


def serve(world: "World") -> None:
    """Apply the folders of OURS; then come the kinds and the account of those who ask."""
    world.make("/api/v1/namespaces", named("Namespace", "medik8s-leases"))
    for name in OURS:
        world.kubectl("apply", "-f", str(ROOT / f"deploy/{name}.yaml"))
    for kind in (ERRS, MACHINES):
        world.make(KINDS, {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"} | crd(kind))
    world.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    world.make("/api/v1/namespaces", named("Namespace", "medik8s"))
    world.make("/api/v1/namespaces/medik8s/serviceaccounts", named("ServiceAccount", "asks"))
    role = ("--clusterrole=remediator-makes-node-repairs", "--serviceaccount=medik8s:asks")
    world.kubectl("create", "clusterrolebinding", "asks", *role)


def fill(world: "World") -> None:
    """What they have asked for, a request for a certificate, and the routes file."""
    world.make(REPAIRS, repair(OTHER))
    event = {"healthEvent": {"nodeName": OTHER}}
    world.make(EXTERNAL, named(ERRS.name, "gpu0-xid79", ERRS.api_version, spec=event))
    status = {"conditions": [{"type": "NVSentinelOwnershipReleased", "status": "True", "reason": "Said"}]}
    reply = world.admin(patch(f"{EXTERNAL}/gpu0-xid79/status", {"status": status})._replace(dry=False))
    assert reply.status == 200, reply
    world.make(NODE_LEASES, node_lease(OTHER, "node-maintenance"))
    world.make(SIGNING, signing_request("waiting", OTHER))
    asks = {"name": "c", "image": "i", "resources": {"limits": {"aliyun.com/gpu-mem": "4"}}}
    world.make("/api/v1/namespaces/team/pods", named("Pod", "sharing", spec={"containers": [asks]}))
    world.make(f"/api/v1/namespaces/{SYSTEM}/configmaps", named("ConfigMap", "remediator-routes", data={"a": "b"}))


def repair(node: str) -> Object:
    """What NodeHealthCheck makes of its template."""
    meta = {"finalizers": ["example.com/theirs"]}
    return named("NodeRepair", node, "requests.remediator.dev/v1alpha1", metadata=meta, spec={"operation": "reboot"})


def node_lease(node: str, holder: str) -> Object:
    """What says who works on a node."""
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 600}
    return named("Lease", f"node-{node}", "coordination.k8s.io/v1", spec=spec)


def binding(node: str) -> Object:
    """A Binding of the order of a node, which is to stay without one."""
    return named("Binding", f"order-{node}", target={"apiVersion": "v1", "kind": "Node", "name": node})


def signing_request(name: str, node: str) -> Object:
    """It asks for a certificate of the kubelet of a node."""
    key = ec.generate_private_key(ec.SECP256R1())
    words = {NameOID.ORGANIZATION_NAME: "system:nodes", NameOID.COMMON_NAME: f"system:node:{node}"}
    subject = x509.Name([x509.NameAttribute(part, word) for part, word in words.items()])
    asked = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    spec = {
        "request": base64.b64encode(asked.public_bytes(Encoding.PEM)).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
        "usages": ["digital signature", "client auth"],
    }
    return named("CertificateSigningRequest", name, "certificates.k8s.io/v1", spec=spec)
