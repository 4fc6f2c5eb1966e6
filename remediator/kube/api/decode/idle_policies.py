"""IdlePolicies → nouns."""

from remediator.core.idle_policy import SIGNALS, IdlePolicy, Signal
from remediator.kube import api
from remediator.kube.api.decode.policies import selector, window
from remediator.kube.api.decode.times import duration


def idle_policy(wire: api.IdlePolicy) -> IdlePolicy:
    """Which Pods somebody should look at, and what becomes of them."""
    spec = wire.spec
    return IdlePolicy(
        name=wire.metadata.name,
        namespaces=spec.namespaces,
        mode=spec.mode,
        selector=selector(spec.pod_selector),
        owner_label=spec.owner_label,
        signals=tuple(Signal(row.series, row.at_most) for row in spec.signals) or SIGNALS.get(spec.finds, ()),
        idle_for=duration(spec.idle_for),
        windows=tuple(map(window, spec.windows)),
        grace=duration(spec.grace),
        actions=spec.actions,
        most=spec.max_per_run,
        finds=spec.finds,
        alert=spec.alert,
        ticket=spec.ticket,
        nvml=spec.nvml,
    )
