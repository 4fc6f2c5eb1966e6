#!/usr/bin/env -S python3 -I -S -B
"""Move the Pods of a node away: ask each to go, politely and again, until none is left that should go.

Mirror Pods, Pods of DaemonSets, ended Pods, and those of kube-system and of the operations' own namespace stay. An
eviction that a PodDisruptionBudget refuses is tried again, each Pod at its own growing interval; who is in the way is
written to status.drain of the NodeOperation whenever that changes. Nothing is watched: each round lists the Pods again.
Of Pods that come after the drain has begun, ten of one controller are asked to go, and then nobody any more.
Pods of one gang go together or not at all, and not while an annotation keeps one of them on another node. A Pod with
the annotation remediator.dev/checkpoint is asked before.

A Pod that no controller makes again, one with data in an emptyDir, and one whose annotation keeps it
(remediator.dev/evict, cluster-autoscaler.kubernetes.io/safe-to-evict, karpenter.sh/do-not-disrupt) is asked by no
strategy, and while it is there no other one is either: what would be lost has to be declared, by its annotation or
in the template. Nor is anybody asked before the first progress has been written.

PARAMETERS: operation and operationUID (the NodeOperation), caseUID (the case that holds the node), strategy (Evict;
Delete asks no budget; EvictThenDelete deletes what a budget has refused, after evictForSeconds, half of the time unless
given; ForceDelete forgets the Pods of a silent node, whose processes may run on; WaitForCompletion asks nobody; None
leaves all Pods), rules (a list: another strategy for the Pods of namespaces, owners, selector.matchLabels; the first
that applies), deleteBarePods and deleteEmptyDirData (false), overrideAnnotationsAfterSeconds (from then on no
annotation keeps a Pod; never), timeoutSeconds (1800), perSecond (5 evictions), skipWaitForDeleteSeconds (a Pod whose
end is overdue by more is not waited for: its process cannot end, and a reboot is what ends it), case, policy and
namespace (their names, where a hold, a mode and a pause are looked up).

It asks no more Pods to go while a user stops the repair: holds, releases or deletes the case or takes its approval
back, excludes or uncordons the node, pauses the policy or everything, or sets its urgency to Never; nor while the node
is part of the control plane, by a label or by a static Pod. Then it waits, also beyond its time: the controller ends
the operation. Nor does its own time run out while the API server does not
answer it, or has nobody to ask whether a Pod may be evicted (deploy/evictions): nobody is deleted for that. The
controller's may, and ends the operation then.

It stops by itself (exit 2) when its NodeOperation has ended or is gone, when the node is not the one that was meant, or
when the case no longer holds the node. Exit 0: no Pod is left that should go. Exit 1: the time was over; who was in the
way is named.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

import os

from nodelib.contract.operation import Environment, Failed, main
from nodelib.k8s.api import Api, Unreachable
from nodelib.k8s.drain_moves import ASKS, KEEP, LEAVE
from nodelib.k8s.drain_orders import read_orders
from nodelib.k8s.job_drain import JobDrain


def drain(environment: Environment, dry_run: bool) -> str:
    """Drain the node of this environment and return the sentence."""
    orders = read_orders(environment.parameters)
    if {orders.strategy, *(rule.strategy for rule in orders.rules)} == {"None"}:
        return f"nothing to drain on {environment.node}: strategy None"
    work = JobDrain(Api(os.environ, environment.token_dir), environment.node, orders)
    if not dry_run:
        return work.run()
    try:
        work.look()
        steps = work.steps()
    except Unreachable as error:
        raise Failed(str(error)) from error
    kept = any(move.verb == KEEP for _, move in steps)
    for pod, move in steps:
        if kept and move.verb in ASKS:
            continue
        why = move.why or ("already ending" if pod.ending else "")
        print(f"would {move.verb} {pod.key}{f': {why}' if why else ''}")
    staying = sum(move.verb != LEAVE and (kept or move.verb not in ASKS) for _, move in steps)
    asked = 0 if kept else sum(move.verb in ASKS for _, move in steps)
    return f"{asked} pods would go from {environment.node}{f', {staying} would not' if staying else ''}"


if __name__ == "__main__":
    main(drain, __doc__)
