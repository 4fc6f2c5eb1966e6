"""A real Kubernetes control plane on loopback: etcd and kube-apiserver, and what a test wants beside them."""

import base64
import http.client
import json
import os
import shutil
import signal
import ssl
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.request import Request, urlopen

from deploy.images.programs import binary, stages
from remediator_sim.ports import free_ports
from tests.cluster.keys import Keys
from tests.cluster.processes import Child, Running

HOST = "127.0.0.1"
READY_SECONDS = 60.0
COMPACTED = "compact_rev_key"  # where API servers tell each other what has been compacted
OURS = [f"system:serviceaccounts:{space}" for space in ("remediator-system", "remediator-operations")]
AUDITED = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "userGroups": OURS}, {"level": "None"}],
}
POD_GROUPS = ("--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1beta1=true")
KWOK_NODES = "kwok.x-k8s.io/node=fake"
PATIENT, AT_ONCE = 10.0, 0.0  # how long a program has to end in order: an API server waits for open watches


class ControlPlane:
    """Start it by `with`, or by `start` and `stop` from the thread that lives on.

    `directory` keeps keys, data and logs; without one they go with the control plane. KWOK plays only the nodes that
    carry the annotation kwok.x-k8s.io/node=fake, and renews their Leases, which are good for `lease_seconds`; with
    `silent_seconds` a node is not Ready once its kubelet has been silent for so long. A `detached` control plane
    outlives this process. With `audit` it writes down what our accounts ask; with `pod_groups` it has the kind PodGroup
    of Kubernetes 1.37.
    """

    def __init__(
        self,
        directory: Path | None = None,
        *,
        controllers: bool = True,
        scheduler: bool = True,
        kwok: bool = True,
        lease_seconds: int = 40,
        silent_seconds: int = 0,
        detached: bool = False,
        audit: bool = False,
        pod_groups: bool = False,
    ) -> None:
        self._wanted = [name for name, on in (("kcm", controllers), ("scheduler", scheduler), ("kwok", kwok)) if on]
        self._directory, self._lease_seconds, self._detached = directory, lease_seconds, detached
        self._silent_seconds = silent_seconds
        self._audit, self._pod_groups = audit, pod_groups
        self._end_seconds = PATIENT if directory else AT_ONCE  # what is thrown away need not be in order
        self._children: list[Child] = []
        self._ends = ExitStack()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        self.stop()

    def start(self) -> None:
        """Start everything and wait until the API server is ready; what failed to start is told with its log."""
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process, the last one started first."""
        self._ends.close()

    @property
    def running(self) -> list[Running]:
        """The processes, in the order in which they are to be ended."""
        return [child.running for child in reversed(self._children)]

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig with a client certificate of `user` in `groups`."""
        return self._keys.kubeconfig(self.url, user, groups)

    def context_for(self, user: str, groups: Sequence[str] = ()) -> ssl.SSLContext:
        """What an HTTPS client needs to be `user` in `groups`."""
        return self._context(self.kubeconfig_for(user, groups))

    def audited(self) -> list[dict[str, Any]]:
        """What our accounts have asked so far, as the audit log of the API server says it."""
        assert self._directory
        return [json.loads(line) for line in (self._directory / "audit.log").read_text().splitlines()]

    def read(self, path: str) -> dict[str, Any]:
        """What the API server says to an administrator at this path: a moment's work, where kubectl takes a start."""
        with urlopen(f"{self.url}{path}", timeout=10, context=self._as_administrator) as reply:
            found: dict[str, Any] = json.load(reply)
        return found

    def compact(self) -> None:
        """Make etcd forget every old version of everything; the API server's cache follows within 15 seconds."""
        revision = self._etcd_says("/v3/kv/range", {"key": _base64(COMPACTED)})["header"]["revision"]
        self._etcd_says("/v3/kv/compaction", {"revision": revision, "physical": True})
        self._etcd_says("/v3/kv/put", {"key": _base64(COMPACTED), "value": _base64(revision)})

    def back_up(self, folder: Path) -> None:
        """Copy what etcd has stored, all as of one moment: it stands still meanwhile."""
        etcd = self._child("etcd").running.pid
        os.kill(etcd, signal.SIGSTOP)
        try:
            shutil.copytree(self._data, folder)
        finally:
            os.kill(etcd, signal.SIGCONT)

    def restore(self, folder: Path) -> None:
        """End every process, give etcd what a backup holds, and start all of them again where they were reached."""
        for child in reversed(self._children):
            child.stop(AT_ONCE)
        self._children.clear()
        shutil.rmtree(self._data)
        shutil.copytree(folder, self._data)
        self._run_all()

    @property
    def _data(self) -> Path:
        assert self._directory
        return self._directory / "etcd"

    def _child(self, name: str) -> Child:
        return next(child for child in self._children if child.name == name)

    def _start(self) -> None:
        if self._directory is None:
            self._directory = Path(self._ends.enter_context(tempfile.TemporaryDirectory(prefix="control-plane-")))
        self._directory.mkdir(parents=True, exist_ok=True)
        self._keys = Keys(self._directory)
        etcd, self._peer, self._secure, *self._others = free_ports(6)
        self._etcd = f"http://{HOST}:{etcd}"
        self.url, self.ca_file = f"https://{HOST}:{self._secure}", self._keys.ca_file
        self.kubeconfig = self.kubeconfig_for("admin", ["system:masters"])
        self._run_all()

    def _run_all(self) -> None:
        self._run("etcd", self._etcd_flags(self._peer)).wait_until(self._etcd_answers, READY_SECONDS)
        self._run("kube-apiserver", self._server_flags(self._secure)).wait_until(self._server_is_ready, READY_SECONDS)
        tables = {"kcm": self._controller_flags, "scheduler": self._scheduler_flags, "kwok": self._kwok_flags}
        names = {"kcm": "kube-controller-manager", "scheduler": "kube-scheduler", "kwok": "kwok"}
        for short, port in zip(self._wanted, self._others, strict=False):
            self._run(names[short], tables[short](port))

    def _run(self, program: str, flags: Sequence[str]) -> Child:
        assert self._directory
        child = Child([binary(program), *flags], self._directory / f"{program}.log", detached=self._detached)
        self._children.append(child)
        self._ends.callback(child.stop, self._end_seconds)
        return child

    def _etcd_flags(self, peer: int) -> list[str]:
        return [
            f"--data-dir={self._data}",
            f"--listen-client-urls={self._etcd}",
            f"--advertise-client-urls={self._etcd}",
            f"--listen-peer-urls=http://{HOST}:{peer}",
            "--unsafe-no-fsync",
            "--quota-backend-bytes=4294967296",
        ]

    def _server_flags(self, port: int) -> list[str]:
        certificate, key = self._keys.issue("server", addresses=[HOST])
        return [
            f"--etcd-servers={self._etcd}",
            f"--bind-address={HOST}",
            f"--advertise-address={HOST}",
            f"--secure-port={port}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={self.ca_file}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={self._keys.accounts}",
            f"--service-account-signing-key-file={self._keys.accounts}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--endpoint-reconciler-type=none",
            "--allow-privileged=true",
            *(self._audit_flags() if self._audit else ()),
            *(POD_GROUPS if self._pod_groups else ()),
        ]

    def _audit_flags(self) -> list[str]:
        assert self._directory
        policy = self._directory / "audit.json"
        policy.write_text(json.dumps(AUDITED))
        return [f"--audit-policy-file={policy}", f"--audit-log-path={self._directory}/audit.log"]

    def _controller_flags(self, port: int) -> list[str]:
        return [
            *self._component_flags(port),
            f"--service-account-private-key-file={self._keys.accounts}",
            f"--root-ca-file={self.ca_file}",
            *(self._patience() if self._silent_seconds else ()),
        ]

    def _patience(self) -> list[str]:
        return [f"--node-monitor-grace-period={self._silent_seconds}s", "--node-monitor-period=1s"]

    def _scheduler_flags(self, port: int) -> list[str]:
        return self._component_flags(port)

    def _component_flags(self, port: int) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            f"--bind-address={HOST}",
            f"--secure-port={port}",
        ]

    def _kwok_flags(self, port: int) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}",
            f"--server-address={HOST}:{port}",
            f"--manage-nodes-with-annotation-selector={KWOK_NODES}",
            f"--node-lease-duration-seconds={self._lease_seconds}",
            *(f"--config={path}" for path in stages()),
        ]

    def _etcd_answers(self) -> bool:
        return _answers(f"{self._etcd}/health", None)

    def _server_is_ready(self) -> bool:
        return _answers(f"{self.url}/readyz", self._as_administrator)

    @cached_property
    def _as_administrator(self) -> ssl.SSLContext:
        return self._context(self.kubeconfig)

    def _context(self, kubeconfig: Path) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.ca_file))
        context.load_cert_chain(kubeconfig.with_suffix(".crt"), kubeconfig.with_suffix(".key"))
        return context

    def _etcd_says(self, path: str, body: dict[str, object]) -> dict:
        """One call through etcd's JSON gateway."""
        with urlopen(Request(self._etcd + path, json.dumps(body).encode()), timeout=10) as reply:
            return json.load(reply)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _answers(url: str, context: ssl.SSLContext | None) -> bool:
    try:
        with urlopen(url, timeout=2, context=context) as reply:
            return reply.status == 200
    except (OSError, http.client.HTTPException):
        return False
