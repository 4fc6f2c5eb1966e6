"""Objects of the API server that node programs read, with only the fields that matter to them."""

CASE_TAINT = {"key": "remediator.dev/case", "value": "case-1", "effect": "PreferNoSchedule"}
BOOT = "11111111-2222-3333-4444-555555555555"
SYSTEM_UUID = "4c4c4544-0043-3010-8052-b4c04f564433"  # of the machine, as its firmware tells it
MADE = "2026-01-01T12:00:00Z"  # when the attempt was
BEFORE, AFTER = "2026-01-01T11:00:00Z", "2026-01-01T12:00:30Z"
GENERATION = "deprecated.daemonset.template.generation"
EVERYTHING = [{"operator": "Exists"}]
DECLARED = {"remediator.dev/evict": "true"}  # the annotation of a bare Pod that its owner lets go


def node(name="gpu-1"):
    """Return a Node that case-1 holds."""
    info = {"bootID": BOOT, "systemUUID": SYSTEM_UUID}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": "node-uid", "annotations": {}},
        "spec": {"taints": [CASE_TAINT], "unschedulable": True},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": info},
    }


def case(name="gpu-1-gpu-lost", **spec):
    """Return the NodeRemediation case-1 of gpu-1."""
    head = {"apiVersion": "remediator.dev/v1alpha1", "kind": "NodeRemediation"}
    named = {"nodeName": "gpu-1", "nodeUID": "node-uid", "policyName": "gpu-lost"}
    return head | {"metadata": {"name": name, "uid": "case-1"}, "spec": named | spec}


def policy(mode="Enforce", name="gpu-lost"):
    """Return a RemediationPolicy in this mode."""
    head = {"apiVersion": "remediator.dev/v1alpha1", "kind": "RemediationPolicy"}
    return head | {"metadata": {"name": name, "uid": "policy-uid"}, "spec": {"mode": mode}}


def namespace(name="remediator-system", **annotations):
    """Return a Namespace."""
    meta = {"name": name, "uid": "namespace-uid", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}


def operation(name="op-1"):
    """Return the NodeOperation of case-1 on gpu-1."""
    return {
        "apiVersion": "remediator.dev/v1alpha1",
        "kind": "NodeOperation",
        "metadata": {"name": name, "uid": "op-uid", "creationTimestamp": MADE},
        "spec": {
            "nodeName": "gpu-1",
            "nodeUID": "node-uid",
            "caseUID": "case-1",
            "attempt": 1,
            "templateName": "reboot",
        },
    }


def pod(
    name, namespace="team", *, node="gpu-1", labels=None, owner="ReplicaSet", phase="Running", annotations=None, **meta
):
    """Return a Pod on `node` that is Ready; `meta`: more of its metadata."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "labels": labels or {},
            "annotations": annotations or {},
            "ownerReferences": [{"kind": owner, "name": "owner", "controller": True}] if owner else [],
            **meta,
        },
        "spec": {"nodeName": node, "restartPolicy": "Always", "containers": [{"name": "main", "image": "train"}]},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def budget(name, least, labels, namespace="team"):
    """Return a PodDisruptionBudget: `least` Pods with `labels` must stay healthy."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "generation": 1},
        "spec": {"minAvailable": least, "selector": {"matchLabels": labels}},
    }


def daemon_set(
    name, namespace="kube-system", *, labels=None, strategy="RollingUpdate", generation="1", tolerations=EVERYTHING
):
    """Return a DaemonSet."""
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
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
    daemon = pod(name, namespace, node=node, labels={"pod-template-generation": generation}, creationTimestamp=created)
    daemon["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": owner, "uid": f"uid-{owner}", "controller": True}
    ]
    daemon["status"]["conditions"] = [{"type": "Ready", "status": ready}]
    return daemon


def renewed_later(pod):
    """Return the Pod that a DaemonSet makes after the attempt, in place of `pod`."""
    meta = pod["metadata"]
    return daemon_pod(f"{meta['name']}-new", meta["ownerReferences"][0]["name"], meta["namespace"], created=AFTER)


def kubelet_lease(second=0, lasts=0.2):
    """Return the Lease of the kubelet of gpu-1, renewed at `second` of a minute and good for `lasts` seconds."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "gpu-1", "namespace": "kube-node-lease", "uid": "uid-lease"},
        "spec": {"renewTime": f"2026-01-01T12:00:{second:02}.000000Z", "leaseDurationSeconds": lasts},
    }
