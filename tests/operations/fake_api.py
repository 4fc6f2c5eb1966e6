"""A small API server over real HTTPS: its objects are dicts, its answers can be scripted."""

import copy
import json
import ssl
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

TOKEN = "the-token-of-this-pod"


def certificate(folder: Path) -> tuple[Path, Path]:
    """Write a certificate for 127.0.0.1 that is its own authority; return its path and its key's."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "fake api")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_path, key_path = folder / "ca.crt", folder / "key.pem"
    cert_path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return cert_path, key_path


def pod(name, namespace="team", *, node="gpu-1", labels=None, owner="ReplicaSet", phase="Running", annotations=None):
    """Return a Pod object on `node`."""
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "labels": labels or {},
            "annotations": annotations or {},
            "ownerReferences": [{"kind": owner, "name": "owner", "controller": True}] if owner else [],
        },
        "spec": {"nodeName": node},
        "status": {"phase": phase},
    }


class FakeApi:
    """State and script. `refuse[pod name]` holds the next answers to its eviction, as (status, body); then it goes."""

    def __init__(self, folder: Path):
        self.node = {
            "metadata": {"name": "gpu-1", "uid": "node-uid", "resourceVersion": "7", "annotations": {}},
            "spec": {"taints": [{"key": "remediator.dev/case", "value": "case-1", "effect": "NoSchedule"}]},
        }
        self.operation = {"metadata": {"name": "op-1", "uid": "op-uid"}, "spec": {"nodeUID": "node-uid"}, "status": {}}
        self.pods: list[dict] = []
        self.budgets: list[dict] = []
        self.refuse: dict[str, list[tuple[int, dict]]] = {}
        self.refuse_always: dict[str, tuple[int, dict]] = {}
        self.requests: list[tuple[str, str, dict]] = []
        self.progress: list[dict] = []
        self.evicted: list[str] = []
        self.fail_next: list[int] = []  # statuses for the very next requests, whatever they are
        self.on_request = lambda method, path: None
        self.lock = threading.Lock()
        token_dir = folder / "token-dir"
        token_dir.mkdir()
        cert, key = certificate(token_dir)
        (token_dir / "token").write_text(TOKEN)
        (token_dir / "namespace").write_text("remediator-operations")
        self.token_dir = token_dir
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_any(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else {}
                if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                    status, answer = 401, {"message": "who are you"}
                else:
                    status, answer = api.answer(self.command, self.path, body)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_DELETE = handle_any

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def environment(self) -> dict[str, str]:
        return {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.server.server_address[1]),
            "TOKEN_DIR": str(self.token_dir),
        }

    def answer(self, method: str, target: str, body: dict) -> tuple[int, dict]:
        with self.lock:
            path, query = urlsplit(target).path, parse_qs(urlsplit(target).query)
            self.requests.append((method, path, body))
            self.on_request(method, path)
            if self.fail_next:
                return self.fail_next.pop(0), {"message": "not now"}
            return copy.deepcopy(self.route(method, path, query, body))

    def route(self, method, path, query, body):
        if path == "/api/v1/nodes/gpu-1":
            return self.patch_node(body) if method == "PATCH" else (200, self.node)
        if path == "/apis/remediator.dev/v1alpha1/nodeoperations/op-1":
            return (200, self.operation) if self.operation else (404, {"message": "nodeoperations op-1 not found"})
        if path.endswith("/nodeoperations/op-1/status") and method == "PATCH":
            self.progress.append(body["status"]["drain"])
            return 200, {}
        if path == "/api/v1/pods":
            return self.list_pods(query)
        if path.endswith("/poddisruptionbudgets"):
            return 200, {"items": [one for one in self.budgets if one["metadata"]["namespace"] == path.split("/")[5]]}
        if path.endswith("/eviction") or method == "DELETE":
            return self.evict(path.split("/")[6], body)
        return 404, {"message": f"no {path}"}

    def list_pods(self, query):
        name = query["fieldSelector"][0].removeprefix("spec.nodeName=")
        found = [one for one in self.pods if one["spec"]["nodeName"] == name]
        start, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
        more = {"continue": str(start + limit)} if start + limit < len(found) else {}
        return 200, {"metadata": more, "items": found[start : start + limit]}

    def evict(self, name, body):
        if name in self.refuse_always:
            return self.refuse_always[name]
        if self.refuse.get(name):
            return self.refuse[name].pop(0)
        wanted = (body.get("deleteOptions") or body)["preconditions"]["uid"]
        for one in self.pods:
            if one["metadata"]["name"] == name:
                if one["metadata"]["uid"] != wanted:
                    return 409, {"message": "Precondition failed: UID"}
                self.pods.remove(one)
                self.evicted.append(name)
                return 201, {}
        return 404, {"message": f"pods {name} not found"}

    def patch_node(self, body):
        if body["metadata"]["resourceVersion"] != self.node["metadata"]["resourceVersion"]:
            return 409, {"message": "the object has been modified"}
        self.node["metadata"]["annotations"].update(body["metadata"]["annotations"])
        self.node["spec"].update(body["spec"])
        return 200, self.node


def too_many(budget="web"):
    """Return the answer of an eviction that a PodDisruptionBudget refuses."""
    cause = {"reason": "DisruptionBudget", "message": f"The disruption budget {budget} needs 2 healthy pods and has 2"}
    return 429, {
        "message": "Cannot evict pod as it would violate the pod's disruption budget.",
        "reason": "TooManyRequests",
        "details": {"causes": [cause]},
    }
