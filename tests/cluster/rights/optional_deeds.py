"""What the controller does with the folders of deploy that not all apply, and what is refused to it beside that."""

from tests.cluster.rights.asking import OTHER, Object, Request, named, patch
from tests.cluster.rights.attacks.attack import COMPLETE, RELEASED, THEIRS, answer, placed
from tests.cluster.rights.deeds import POD, Deed
from tests.cluster.rights.others import EXTERNAL, NODE_LEASES, REPAIRS, node_lease

REPAIR, EVENT = f"{REPAIRS}/{OTHER}", f"{EXTERNAL}/gpu0-xid79"
OURS, THEIRS_TOO = "remediator.dev/outcome", "example.com/theirs"
ITS_FINALIZER, ITS_CONDITIONS = "but its finalizer remediator.dev/outcome", "may change only its Conditions Processing"


def carded(note: str) -> Request:
    """A Binding of a Pod to a node, with one annotation."""
    bound = placed()
    return Request(
        "POST", f"{POD}/unplaced/binding", {**bound, "metadata": {**bound["metadata"], "annotations": {note: "1"}}}
    )


def noted(pod: str, note: str = "remediator.dev/bind-fence") -> Request:
    """One annotation of a Pod."""
    return patch(f"{POD}/{pod}", {"metadata": {"annotations": {note: "1"}}})


def finalizers(path: str, *names: str) -> Request:
    return patch(path, {"metadata": {"finalizers": list(names)}})


def sharing(name: str, node: str = "", **notes: str) -> Object:
    """A Pod that asks for memory of GPUs."""
    asks = {"limits": {"aliyun.com/gpu-mem": "4"}}
    spec = {"containers": [{"name": "c", "image": "i", "resources": asks}], **({"nodeName": node} if node else {})}
    return named("Pod", name, metadata={"annotations": notes}, spec={"serviceAccountName": "default", **spec})


OPTIONAL_DEEDS = (
    Deed("controller", "place a Pod on its card", carded("ALIYUN_COM_GPU_MEM_IDX")),
    Deed(
        "controller",
        "another annotation with that",
        carded("example.com/note"),
        "the annotations that name their cards",
    ),
    Deed(
        "controller",
        "place an order",
        Request("POST", f"{THEIRS}/order-{OTHER}/binding", placed(f"order-{OTHER}")),
        "places no Pod of Remediator",
    ),
    Deed("controller", "fence a Pod that has no node", noted("unplaced")),
    Deed("controller", "fence one that has a node", noted(f"on-{OTHER}"), "an annotation before it has a node"),
    Deed(
        "controller",
        "another annotation of a Pod",
        noted("unplaced", "a"),
        "only the annotation remediator.dev/bind-fence",
    ),
    Deed("administrator", "a Pod that shares a GPU", Request("POST", POD, sharing("shares"))),
    Deed(
        "administrator",
        "one on a node that it names",
        Request("POST", POD, sharing("shares", OTHER)),
        "remove spec.nodeName",
    ),
    Deed(
        "administrator",
        "a card of somebody else",
        patch(f"{POD}/sharing", {"metadata": {"annotations": {"ALIYUN_COM_GPU_MEM_IDX": "0"}}}),
        "come with its binding and never change",
    ),
    # Leases of nodes.
    Deed("controller", "the Lease of a node", Request("POST", NODE_LEASES, node_lease("free", "remediator/a"))),
    Deed(
        "controller",
        "the Lease of a node for another holder",
        Request("POST", NODE_LEASES, node_lease("free", "mine")),
        "as remediator/CASE",
    ),
    Deed(
        "controller",
        "the end of a Lease of another holder",
        Request("DELETE", f"{NODE_LEASES}/node-{OTHER}"),
        "no Lease of another holder",
    ),
    # Requests of other controllers.
    *(
        deed
        for path, called, others in ((REPAIR, "a NodeRepair", (THEIRS_TOO,)), (EVENT, "a request of NVSentinel", ()))
        for deed in (
            Deed("controller", f"its finalizer on {called}", finalizers(path, *others, OURS)),
            Deed("controller", f"a finalizer of others on {called}", finalizers(path, *others, "a/b"), ITS_FINALIZER),
            Deed(
                "controller", f"a label of {called}", patch(path, {"metadata": {"labels": {"a": "b"}}}), ITS_FINALIZER
            ),
            Deed(
                "controller",
                f"a note on {called}",
                patch(path, {"metadata": {"annotations": {"a": "b"}}}),
                ITS_FINALIZER,
            ),
            Deed(
                "controller",
                f"a condition of others of {called}",
                patch(f"{path}/status", answer("Mine")),
                ITS_CONDITIONS,
            ),
        )
    ),
    Deed("controller", "a finalizer of others taken off", finalizers(REPAIR), ITS_FINALIZER),
    Deed(
        "controller", "what a NodeRepair asks for", patch(REPAIR, {"spec": {"operation": "power-cycle"}}), ITS_FINALIZER
    ),
    Deed("controller", "whom NVSentinel asks about", patch(EVENT, {"spec": {"healthEvent": None}}), ITS_FINALIZER),
    Deed("controller", "that it works on a NodeRepair", patch(f"{REPAIR}/status", answer("Processing"))),
    Deed("controller", "the end of a NodeRepair", patch(f"{REPAIR}/status", answer("Succeeded"))),
    Deed("controller", "the end of a request of NVSentinel", patch(f"{EVENT}/status", answer(COMPLETE))),
    Deed("controller", "that NVSentinel has let go", patch(f"{EVENT}/status", answer(RELEASED)), ITS_CONDITIONS),
    Deed(
        "controller",
        "no word of NVSentinel that is left",
        patch(f"{EVENT}/status", {"status": {"conditions": []}}),
        ITS_CONDITIONS,
    ),
    Deed(
        "controller",
        "another field of its status",
        patch(f"{EVENT}/status", {"status": {"phase": "x"}}),
        ITS_CONDITIONS,
    ),
)
