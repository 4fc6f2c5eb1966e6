"""The small API server with what operations elsewhere need besides: DaemonSets, Leases, null in patches."""

from tests.operations.fake_api import FakeApi

MADE = "2026-01-01T12:00:00Z"  # when the attempt was
BEFORE, AFTER = "2026-01-01T11:00:00Z", "2026-01-01T12:00:30Z"
BOOT = "11111111-2222-3333-4444-555555555555"
GENERATION = "deprecated.daemonset.template.generation"


EVERYTHING = [{"operator": "Exists"}]


def daemon_set(
    name, namespace="kube-system", *, labels=None, strategy="RollingUpdate", generation="1", tolerations=EVERYTHING
):
    """Return a DaemonSet object."""
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "labels": labels or {},
            "annotations": {GENERATION: generation} if generation else {},
        },
        "spec": {"updateStrategy": {"type": strategy}, "template": {"spec": {"tolerations": tolerations}}},
    }


def daemon_pod(name, owner, namespace="kube-system", *, created=BEFORE, ready="True", node="gpu-1", generation="1"):
    """Return a Pod of the DaemonSet `owner`."""
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "resourceVersion": "5",
            "creationTimestamp": created,
            "labels": {"pod-template-generation": generation},
            "ownerReferences": [{"kind": "DaemonSet", "name": owner, "uid": f"uid-{owner}", "controller": True}],
        },
        "spec": {"nodeName": node},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
    }


class FakeCluster(FakeApi):
    """State and script. `replace(pod)` returns what the DaemonSet makes once `pod` was deleted; None for nothing."""

    def __init__(self, folder):
        super().__init__(folder)
        self.operation |= {
            "metadata": {"name": "op-1", "uid": "op-uid", "creationTimestamp": MADE},
            "spec": {"nodeUID": "node-uid", "nodeName": "gpu-1", "caseUID": "case-1"},
        }
        self.ready("True")
        self.sets: list[dict] = []
        self.deleted: list[str] = []
        self.replace = lambda pod: daemon_pod(
            f"{pod['metadata']['name']}-new",
            pod["metadata"]["ownerReferences"][0]["name"],
            pod["metadata"]["namespace"],
            created=AFTER,
        )
        self.leases: dict[str, dict] = {}  # by namespace/name
        self.lose_lease = False  # create it, and answer 503
        self.heartbeats = 0  # how often the kubelet still renews
        self.lease_seconds = 0.2

    def ready(self, status):
        conditions = [{"type": "Ready", "status": status}] if status else []
        info = {"bootID": BOOT, "systemUUID": self.node.get("status", {}).get("nodeInfo", {}).get("systemUUID", "")}
        self.node["status"] = {"conditions": conditions, "nodeInfo": info}

    def writes(self):
        return [(method, path) for method, path, _ in self.requests if method != "GET"]

    def route(self, method, path, query, body):
        if path.endswith("/daemonsets"):
            found = [one for one in self.sets if path.count("/") == 4 or path.split("/")[5] == space(one)]
            return self.page(found, query)
        if path.startswith("/api/v1/namespaces/") and path.endswith("/pods"):
            return self.page([one for one in self.pods if space(one) == path.split("/")[4] and here(one, query)], query)
        if "/leases" in path:
            return self.lease(method, path.split("/")[5], path.rpartition("/leases")[2].strip("/"), body)
        if method == "DELETE":
            return self.delete(path.split("/")[6], body)
        return super().route(method, path, query, body)

    def page(self, found, query):
        start, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
        more = {"continue": str(start + limit)} if start + limit < len(found) else {}
        return 200, {"metadata": more, "items": found[start : start + limit]}

    def delete(self, name, body):
        for pod in self.pods:
            if pod["metadata"]["name"] == name:
                meant = {part: pod["metadata"][part] for part in ("uid", "resourceVersion")}
                if body["preconditions"] != meant:
                    return 409, {"message": "Precondition failed"}
                self.pods.remove(pod)
                self.deleted.append(name)
                new = self.replace(pod)
                self.pods += [new] if new else []
                return 200, pod
        return 404, {"message": f"pods {name} not found"}

    def lease(self, method, namespace, name, body):
        if namespace == "kube-node-lease":
            spec = {"renewTime": f"2026-01-01T12:00:{self.heartbeats:02}.000000Z"}
            return 200, {"spec": {**spec, "leaseDurationSeconds": self.lease_seconds}}
        if method == "GET":
            found = self.leases.get(f"{namespace}/{name}")
            return (200, found) if found else (404, {"message": f"leases {name} not found"})
        key = f"{namespace}/{body['metadata']['name']}"
        if key in self.leases:
            return 409, {"message": f"leases {key} already exists"}
        self.leases[key] = body
        if self.lose_lease:
            self.lose_lease = False
            return 503, {"message": "the answer was lost"}
        return 201, body

    def patch_node(self, body):
        if body["metadata"]["resourceVersion"] != self.node["metadata"]["resourceVersion"]:
            return 409, {"message": "the object has been modified"}
        for kept, change in (
            (self.node["metadata"]["annotations"], body["metadata"]["annotations"]),
            (self.node["spec"], body["spec"]),
        ):
            kept.update(change)
            for key in [key for key, value in kept.items() if value is None]:
                del kept[key]
        return 200, self.node


def space(one):
    return one["metadata"]["namespace"]


def here(pod, query):
    return query["fieldSelector"][0] == f"spec.nodeName={pod['spec']['nodeName']}"
