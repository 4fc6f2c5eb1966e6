"""What GitHub takes of a route: the form of a repository's name, and how many labels and assignees an issue has."""

import re

from remediator.core.ticket_route import REPOSITORY
from remediator.tickets.channels.routes import Route

LABELS, LABEL_LENGTH = 32, 50
ASSIGNEES, LOGIN_LENGTH = 10, 64
MILESTONE_LENGTH = 255


def problem(route: Route) -> str:
    """The first field that GitHub would refuse, and why; "" where it takes the route."""
    if not re.fullmatch(REPOSITORY, route.repository):
        return f"repository is {route.repository!r}, not owner/name"
    if len(route.labels) > LABELS or not all(1 <= len(label) <= LABEL_LENGTH for label in route.labels):
        return f"labels are more than {LABELS}, or one has not 1 to {LABEL_LENGTH} characters"
    if len(route.assignees) > ASSIGNEES or not all(1 <= len(login) <= LOGIN_LENGTH for login in route.assignees):
        return f"assignees are more than {ASSIGNEES}, or one has not 1 to {LOGIN_LENGTH} characters"
    if len(route.milestone) > MILESTONE_LENGTH:
        return f"milestone has more than {MILESTONE_LENGTH} characters"
    return ""
