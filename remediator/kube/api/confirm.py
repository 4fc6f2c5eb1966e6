"""The second source that a policy may ask before it acts."""

from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.kube.api.common import Base, Rule, doc, rules
from remediator.kube.api.durations import SampleAge

PromQL = Annotated[
    str,
    Meta(min_length=1, max_length=2048),
    rules(
        Rule("self.contains('{{node}}')", "must name the node, {{node}}, or the answer is about any node"),
        Rule("!self.replace('{{node}}', '').contains('{{')", "{{node}} is the only placeholder; remove the others"),
    ),
]


class Confirm(Base, frozen=True, kw_only=True):
    """A second source that must agree before anything is done to a node."""

    prom_ql: Annotated[
        PromQL,
        doc(
            "Query that Prometheus (--prometheus-url of the controller) is asked; {{node}} stands for the name of the "
            "node. A value that is not 0 confirms the fault, 0 does not. Where there is no answer, or an "
            "empty or partial one, or one with a warning, the case is held. Required."
        ),
    ] = msgspec.field(name="promQL")
    within: Annotated[SampleAge, doc("How old a sample may be when something begins because of it. Default 5m.")] = "5m"
