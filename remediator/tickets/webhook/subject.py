"""What an alert is about: the node that it names, else itself. Pure.

No label is believed to name a node that is not there: whoever writes rules could have an issue for each name.
"""

from collections.abc import Collection, Mapping

from remediator.core.alerts import LONGEST_NAME, node_names
from remediator.core.text import one_line
from remediator.core.ticket import About, Subject


def of_alert(labels: Mapping[str, str], nodes: Collection[str]) -> Subject:
    """What an alert is about: the node that it names, else itself in its cluster. `nodes`: those known to exist."""
    node = next((name for name in node_names(labels) if name in nodes), "")
    if node:
        return Subject(About.NODE, node=node)
    name = one_line(labels.get("alertname", ""), LONGEST_NAME) or "unnamed"
    return Subject(About.ALERT, alert=name, cluster=one_line(labels.get("cluster", ""), LONGEST_NAME))
