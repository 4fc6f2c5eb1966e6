"""What the checks remember: every object as it is now, and of each that ever was how it began and how it ended."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from remediator_sim.invariants import clauses, contract, failures, idle_ends, pod_words
from remediator_sim.invariants.contract import (
    BUDGETS,
    CASES,
    INVENTORIES,
    KINDS,
    LEASES,
    NAMESPACES,
    NODES,
    OPERATIONS,
    PODS,
    POLICIES,
    REQUESTS,
    TEMPLATES,
    Obj,
    part,
)
from remediator_sim.invariants.event import ABSENT, CONFIRMED, ISSUES, KILLED, PERSON, REBOOT, RENEWED, TICK, Event
from remediator_sim.invariants.tracked import HeldLease, Limits, Mark, Moment, Start, Tracked


class History:
    """All that has happened so far, `take`n in one event at a time, each before it is judged."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.objects: dict[str, dict[str, Obj]] = {kind: {} for kind in (*KINDS, INVENTORIES, LEASES, *REQUESTS)}
        self.tracked: dict[str, Tracked] = {}
        self.pods_of: defaultdict[str, list[Tracked]] = defaultdict(list)  # by operation uid, looks and drains left out
        self.operations_of: defaultdict[str, list[Tracked]] = defaultdict(list)  # by case uid
        self.requests: list[Tracked] = []  # of other controllers, every one that ever was
        self.tests: list[Tracked] = []  # the Pods that test idle nodes, every one that ever was
        self.proven: list[idle_ends.Proven] = []  # what these have proven
        self.open: dict[str, Tracked] = {}  # cases that have not ended
        self.starts: list[Start] = []
        self.tries: dict[str, failures.Try] = {}  # that have ended, by operation
        self.static: defaultdict[str, set[str]] = defaultdict(set)  # by node: keys of its control plane's static Pods
        self.left: dict[str, datetime] = {}  # by node: when it last was part of the control plane no more
        self.stops: dict[str, datetime] = {}  # what stops starts: a sentence → since when
        self.pauses: list[datetime] = []  # when somebody paused everything
        self.unpaused = datetime(1970, 1, 1, tzinfo=UTC)  # when somebody last let everything go on
        self.moved: dict[str, datetime] = {}  # by budget: when somebody last changed what it asks for
        self.shrunk = datetime(1970, 1, 1, tzinfo=UTC)  # when a node last went or was labelled anew
        self.edited: dict[str, datetime] = {}  # by policy: the same
        self.taken_back: dict[
            tuple[str, str], datetime
        ] = {}  # by template and field of its drain: when it was last set
        self.marks: dict[str, Mark] = {}
        self.survivors: dict[str, tuple[datetime, Tracked, Obj]] = {}  # by uid: the newest kill, and what stood then
        self.standing = True  # what stood before anybody looked is taken in, and tells its own times
        self.confirmed: dict[tuple[str, str], datetime] = {}  # by node and condition: when the second source said yes
        self.learned: dict[str, datetime] = {}  # by uid of a policy: since when it knows what is new
        self.crowds: dict[
            str, tuple[datetime, datetime]
        ] = {}  # the same: when many showed that, from the first time on
        self.absences: list[tuple[datetime, datetime | None]] = []  # from, until; None: still
        self.reboots: list[Obj] = []
        self.issues: list[Obj] = []
        self.renewed: dict[
            str, datetime
        ] = {}  # by node: when its kubelet, which reports no status, renewed its Lease last
        self.leases: dict[str, HeldLease] = {}  # of medik8s, by node
        self.gangs: dict[tuple[str, str], datetime] = {}  # by gang and drain Pod: when its first Pod was evicted
        self.forgotten: set[tuple[str, int]] = (
            set()
        )  # repository and number of those that a restored backup does not know
        self.since = self.ticked = self.at = datetime(1970, 1, 1, tzinfo=UTC)
        self.set_back = self.since  # when what is stored was set back to a backup last
        self._cases: list[Tracked] = []
        self.down: dict[str, datetime] = {}  # since when nodes are down
        self.replaced: dict[str, datetime] = {}  # since when another machine works than the one that was proven
        self.unreachable: dict[str, datetime] = {}  # since when their kubelets do not report
        self._seen: defaultdict[str, deque[tuple[datetime, Obj]]] = defaultdict(deque)

    # --- looking ---------------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> dict[str, Obj]:
        """The nodes as they are now."""
        return self.objects[NODES]

    def cases(self) -> Iterator[Tracked]:
        """Every case that ever was."""
        return iter(self._cases)

    def policy(self, case: Obj) -> Obj | None:
        """The policy of a case, as far as it rules it."""
        policy = self.objects[POLICIES].get(case["spec"].get("policyName", ""))
        return contract.of_new_node(policy) if policy and contract.gate(case) else policy

    def policies_lately(self) -> Iterator[Obj]:
        """The policies, those among them that were deleted within the grace."""
        since = self.at - self.limits.grace
        known = (tracked for tracked in self.tracked.values() if tracked.kind == POLICIES)
        return (tracked.last for tracked in known if tracked.gone is None or tracked.gone > since)

    def lately(self, node: str) -> list[Obj]:
        """What the node said within the grace up to now, oldest first."""
        seen = self._seen[node]
        while len(seen) > 1 and seen[1][0] <= self.at - self.limits.grace:
            seen.popleft()
        return [state for _, state in seen]

    def sick(self, node: str, policy: Obj) -> bool:
        """Whether the node was clearly sick at any time within the grace."""
        stale = self.limits.stale + self.limits.grace
        return any(clauses.sick(state, policy, self.at, stale) is True for state in self.lately(node))

    def well(self, node: str, policy: Obj) -> bool:
        """Whether the node clearly showed no fault at any time within the grace."""
        stale = self.limits.stale + self.limits.grace
        return any(clauses.sick(state, policy, self.at, stale) is False for state in self.lately(node))

    def clear(self, node: str, policy: Obj) -> bool:
        """Whether it could be told at any time within the grace how the node is."""
        stale = self.limits.stale + self.limits.grace
        return any(clauses.sick(state, policy, self.at, stale) is not None for state in self.lately(node))

    def lately_edited(self, policy: str) -> bool:
        """Whether somebody changed what a policy asks for a moment ago: what was decided before cannot be judged."""
        return policy in self.edited and self.at - self.edited[policy] < self.limits.grace

    def stopped(self, case: Obj) -> dict[str, datetime]:
        """What everybody can see to stop starts of a case, and since when: a sentence → a time."""
        standing, policy = self.set_stops(case), case["spec"].get("policyName", "")
        node = case["spec"].get("nodeName", "")
        works = (_maintained(node), _leased(node))
        standing |= {word: self.stops[word] for word in works if word in self.stops}
        blocks = part(case, "status").get("blockedBy") or ()
        reasons = {block["reason"] for block in blocks}
        if not reasons.isdisjoint(FAILING):  # open until a user closes it
            standing[f"a breaker of policy {policy} or of a budget is open"] = self.at
        if not reasons.isdisjoint(UNCONFIRMED):
            standing["the second source does not agree"] = self.at
        if not reasons.isdisjoint(NEW):
            standing["its criterion is new"] = self.at
        if not reasons.isdisjoint(BLASTS):
            standing["its start would end too much work"] = self.at
        return standing

    def set_stops(self, case: Obj) -> dict[str, datetime]:
        """What a user, or what the node runs, stops all of a case with: it ends what has not touched the node yet."""
        if not self.stops:  # as nearly always
            return {}
        node = case["spec"].get("nodeName", "")  # somebody may have written anything there
        policy, name = case["spec"].get("policyName", ""), contract.name(case)
        stops = (PAUSE, _mode(policy), _hold(name), _approval(name), _exclude(node), control_plane(node))
        return {word: self.stops[word] for word in stops if word in self.stops}

    def starts_within(self, window: timedelta) -> list[Start]:
        """The newest start, and those less than the window before it; not those that came to nothing."""
        recent = [start for start in self.starts if start.at > self.starts[-1].at - window]
        return [start for start in recent if not self.came_to_nothing(start)]

    def came_to_nothing(self, start: Start) -> bool:
        """Whether it was cancelled before it had a drain, or a Pod of its own that ran: `counts: false` in the case.

        A drain disturbs, so that the breaker counts it; for the ladder such a try is none, see attempts.py.
        """
        last = [tracked.last for tracked in self.operations_of[start.case] if tracked.name == start.operation]
        return bool(last) and not part(last[0], "status").get("drainStartedAt") and self.never_ran(last[0])

    def never_ran(self, operation: Obj) -> bool:
        """Whether it was cancelled before a Pod of its own had started."""
        return contract.phase(operation) == "Cancelled" and self.not_started(operation)

    def not_started(self, operation: Obj) -> bool:
        """Whether no Pod of its own has started."""
        return all(pod_words.never_started(pod.last) for pod in self.pods_of.get(contract.uid(operation), ()))

    def absent(self, since: datetime) -> timedelta:
        """For how long nobody of us could act since then."""
        spans = ((max(begun, since), until or self.at) for begun, until in self.absences)
        return sum((until - begun for begun, until in spans if until > begun), timedelta())

    def acts(self) -> bool:
        """Whether somebody of us could act for all of the time that what is over may take to be cleared away."""
        return not self.absent(self.at - self.limits.settle)

    def in_vain(self, policy: Obj) -> str:
        """Why the breaker on failures of a policy has to be open, "" where it need not."""
        heard = {
            operation: self.at - record.known - self.absent(record.known) > self.limits.grace
            for operation, record in self.tries.items()
        }
        return failures.why_open(self.tries.values(), policy, self.at, heard)

    def passed(self, moment: datetime) -> bool:
        """Whether this moment lies between the last look at the clock and the present one."""
        return self.since < moment <= self.ticked

    # --- remembering -----------------------------------------------------------------------------------------------

    def take(self, event: Event) -> None:
        """Take in one event."""
        self.at = event.at
        if event.kind in self.objects:
            self._object(event)
        taken = _TAKE.get(event.kind)
        if taken is not None:
            taken(self, event)

    def _object(self, event: Event) -> None:
        here = self.objects[event.kind]
        if event.new is None:
            here.pop(event.key, None)
        else:
            here[event.key] = event.new
        uid = contract.uid(event.obj)
        tracked = self.tracked.get(uid)
        if tracked is None:
            tracked = self.tracked[uid] = Tracked(event.kind, event.obj, event.at, event.obj)
            self._index(tracked, uid)
        tracked.last = event.obj
        if event.new is not None and part(event.old, "status") and not part(event.new, "status"):
            tracked.emptied = event.at
        if (
            event.kind == PODS
            and event.old is not None
            and not contract.pod_ended(event.old)
            and contract.pod_ended(event.obj)
        ):
            tracked.ended = event.at
        if event.new is None:
            tracked.gone = event.at

    def _index(self, tracked: Tracked, uid: str) -> None:
        if tracked.kind == CASES:
            self._cases.append(tracked)
        if tracked.kind == PODS and pod_words.template(tracked.first) not in ("", contract.LOOKS, contract.DRAINS):
            self.pods_of[part(tracked.first, "metadata", "labels").get(contract.OPERATION_UID, "")].append(tracked)
        if tracked.kind == PODS and pod_words.tests_for(tracked.first):
            self.tests.append(tracked)
        if tracked.kind in REQUESTS:
            self.requests.append(tracked)
        if tracked.kind == OPERATIONS:
            self.operations_of[tracked.first["spec"].get("caseUID", "")].append(tracked)

    def stands(self, word: str, now: bool) -> None:
        """Note whether something that stops starts is so now."""
        if now:
            self.stops.setdefault(word, self.at)
        else:
            self.stops.pop(word, None)


# --- what each kind of event means ---------------------------------------------------------------------------------

FAILING, UNCONFIRMED = frozenset({"PolicyFailing", "BudgetFailing"}), frozenset({"NotConfirmed", "ConfirmationUnknown"})
NEW = frozenset({"NewCriterion", "CriterionMuted"})
BLASTS = frozenset({"BlastRadius", "BlastRadiusUnknown"})
TIMES = ("drainStartedAt", "intent", "finishedAt")  # of an operation
PAUSE = f"the namespace {contract.SYSTEM} is paused"


def _mode(policy: str) -> str:
    return f"policy {policy} lets nothing start"


def _hold(case: str) -> str:
    return f"a person holds case {case}"


def _approval(case: str) -> str:
    return f"nobody has approved case {case}"


def _exclude(node: str) -> str:
    return f"a person excluded {node}"


def _maintained(node: str) -> str:
    return f"another system works on {node}"


def _leased(node: str) -> str:
    return f"another system holds the Lease of {node}"


def control_plane(node: str) -> str:
    """What stops everything on a node of the control plane."""
    return f"{node} is part of the control plane"


def _pod(history: History, event: Event) -> None:
    node = part(event.obj, "spec").get("nodeName", "")
    tested = pod_words.tested(event.obj)[1]
    if tested and (found := idle_ends.proven(event, history.lately(tested))):
        history.proven.append(found)
    if pod_words.static(event.obj):
        (history.static[node].add if event.new else history.static[node].discard)(event.key)
        _of_control_plane(history, node)


def _of_control_plane(history: History, node: str) -> None:
    holds = bool(history.static[node]) or contract.of_control_plane(history.nodes.get(node))
    if not holds and control_plane(node) in history.stops:
        history.left[node] = history.at
    history.stands(control_plane(node), holds)


def _namespace(history: History, event: Event) -> None:
    if event.key == contract.SYSTEM:
        paused = contract.PAUSED in part(event.new, "metadata", "annotations")
        if PAUSE in history.stops:
            history.unpaused = event.at
        elif paused:
            history.pauses.append(event.at)
        history.stands(PAUSE, paused)


def _learn(history: History, event: Event) -> None:
    """Note since when a policy knows what is new; what stood before anybody looked tells its own time."""
    rows, uid = part(event.new, "status").get("criteria") or (), contract.uid(event.obj)
    if not rows:
        history.learned.pop(uid, None)
    elif uid not in history.learned:
        times = [contract.moment(row["since"]) for row in rows]
        history.learned[uid] = min(times) if history.standing else event.at


def _policy(history: History, event: Event) -> None:
    spec = part(event.new, "spec")
    if event.old is not None and part(event.old, "spec") != spec:
        history.edited[event.key] = event.at
    if event.old is None and not history.standing:  # one of another uid: what was counted went with the one before
        stays = {
            key: record for key, record in history.tries.items() if record.policy != event.key or not record.in_vain
        }
        history.tries = stays  # of one that was not in vain its case may still tell
    _learn(history, event)
    acts = spec.get("mode") == "Enforce" and part(spec, "urgency").get("mode") != "Never"
    history.stands(_mode(event.key), event.new is not None and not acts)
    for tracked in history.open.values():
        if tracked.last["spec"].get("policyName") == event.key:
            history.stands(_approval(tracked.name), contract.unapproved(tracked.last, history.policy(tracked.last)))


def _template(history: History, event: Event) -> None:
    before, after = (part(obj, "spec", "drain") for obj in (event.old, event.new))
    for field in contract.DECLARES:
        if before.get(field) and not after.get(field):
            history.taken_back[event.key, field] = event.at


def _budget(history: History, event: Event) -> None:
    emptied = part(event.old, "status") and not part(event.new, "status")
    if event.old is not None and (emptied or part(event.old, "spec") != part(event.new, "spec")):
        history.moved[event.key] = event.at


def _node(history: History, event: Event) -> None:
    node, before = event.new, event.old
    history.stands(_exclude(event.key), part(node, "metadata", "labels").get(contract.EXCLUDE, "false") != "false")
    history.stands(_maintained(event.key), contract.maintained(node))
    _of_control_plane(history, event.key)
    if before is not None and part(before, "metadata", "labels") != part(node, "metadata", "labels"):
        history.shrunk = event.at
    if node is None:
        history.replaced.pop(event.key, None)
        history.marks.pop(event.key, None)  # they go with it: another machine may come under its name
    else:
        history._seen[event.key].append((event.at, node))
        history.lately(event.key)
        _since(history.down, event, contract.down(node))
        _since(history.replaced, event, _is_replaced(history, event.key, node))
        _since(history.unreachable, event, contract.says(node, "Ready") == "Unknown")
        _wellness(history, event.key, node)


def _is_replaced(history: History, name: str, node: Obj) -> bool:
    """Whether another machine works there than the one that was proven, and nothing leaves it alone."""
    keys = {taint["key"] for taint in contract.taints(node)}
    proven = {machine for key, machine in contract.admitted(node).items() if key not in keys}
    left_alone = {_exclude(name), control_plane(name)} & history.stops.keys()
    return bool(proven - {contract.machine(node)}) and not left_alone


def _lease(history: History, event: Event) -> None:
    """Who holds the Lease of a node from now on."""
    node = contract.leased(event.key)
    if not node:
        return
    spec, before = part(event.new, "spec"), history.leases.get(node)
    holder = spec.get("holderIdentity") or ""
    since = before.since if before and before.holder == holder else event.at
    until = contract.moment(spec.get("renewTime") or "") + timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
    history.leases[node] = HeldLease(holder, since, until)
    _held_by_others(history, node)


def _held_by_others(history: History, node: str) -> None:
    lease = history.leases[node]
    history.stands(_leased(node), lease.of_another and lease.until > history.at)


def _since(since: dict[str, datetime], event: Event, now: bool) -> None:
    """Note since when something is so of an object."""
    if now:
        since.setdefault(event.key, event.at)
    else:
        since.pop(event.key, None)


def _wellness(history: History, name: str, node: Obj) -> None:
    """Since when the nodes of open cases have shown clearly that they are well."""
    for tracked in history.open.values():
        if tracked.last["spec"]["nodeName"] == name:
            policy = history.policy(tracked.last)
            fault = policy and clauses.sick(node, policy, history.at, history.limits.stale)
            good = fault is False and contract.says(node, "Ready") == "True"
            tracked.well = (tracked.well or history.at) if good else None


def _case(history: History, event: Event) -> None:
    uid, tracked = contract.uid(event.obj), history.tracked[contract.uid(event.obj)]
    history.stands(_hold(event.key), part(event.new, "spec").get("hold") is True)
    open_ = event.new is not None and not contract.ended(event.new)
    history.stands(_approval(event.key), open_ and contract.unapproved(event.new, history.policy(event.obj)))
    if contract.ended(event.obj) or event.new is None:
        tracked.over = tracked.over or event.at
        history.open.pop(uid, None)
    else:
        history.open[uid] = tracked
    tracked.held = (tracked.held or event.at) if contract.held(event.new) else None
    tracked.queued = (tracked.queued or event.at) if contract.queued(event.new) else None
    tracked.free = (tracked.free or event.at) if contract.goes_on(event.new) else None
    if True in (part(obj, "spec").get("approved") for obj in (event.old, event.new)):
        tracked.approved = event.at
    if contract.deleted(event.new):
        tracked.deleted = tracked.deleted or event.at
    if part(event.new, "spec").get("release") is True:
        tracked.released = tracked.released or event.at
    if part(event.obj, "status").get("startedAt"):
        tracked.claimed = tracked.claimed or event.at
    if contract.phase(event.obj) == "Escalated":
        tracked.escalated = tracked.escalated or event.at
    if contract.is_out(event.new):
        tracked.out = tracked.out or event.at
    if contract.kept_until(event.new) != contract.kept_until(event.old):
        tracked.agreed = event.at
    failures.remember(history.tries, event.obj, event.at)
    spec, known = event.obj["spec"], {start.operation for start in history.starts}
    # One of a case whose status was emptied is told again, and is the same.
    for attempt in begun(event):
        if attempt["operation"] in known:
            continue
        start = Start(_began(history, attempt), uid, spec["nodeName"], spec.get("policyName", ""), attempt["operation"])
        history.starts.append(start)


def _operation(history: History, event: Event) -> None:
    times, status = history.tracked[contract.uid(event.obj)].times, part(event.obj, "status")
    for word in TIMES:
        stamp = part(status, "intent").get("at") if word == "intent" else status.get(word)
        if stamp and word not in times:
            written = contract.moment(stamp)
            times[word] = Moment(written if history.standing else history.at, written)


def _request(history: History, event: Event) -> None:
    """Since when nobody waits any more for what another controller has asked for."""
    tracked, meta = history.tracked[contract.uid(event.obj)], part(event.obj, "metadata")
    if meta.get("deletionTimestamp") or contract.TIMED_OUT in part(meta, "annotations"):
        tracked.withdrawn = tracked.withdrawn or event.at


def _began(history: History, attempt: Obj) -> datetime:
    """When it says that it began, where that may be believed: the write itself may have been held up."""
    started = contract.moment(attempt.get("startedAt") or "")
    return started if history.standing or abs(history.at - started) <= history.limits.grace else history.at


def begun(event: Event) -> list[Obj]:
    """The tries of which a write of a case tells for the first time."""
    return [attempt for attempt in _told(event) if contract.is_try(attempt)]


def followed(event: Event) -> list[Obj]:
    """What it tells of for the first time that only completes a try."""
    return [attempt for attempt in _told(event) if attempt.get("follows")]


def probed(event: Event) -> list[Obj]:
    """The probes of which it tells for the first time."""
    return [attempt for attempt in _told(event) if attempt.get("probe")]


def _told(event: Event) -> list[Obj]:
    known = {attempt["operation"] for attempt in contract.attempts(event.old)}
    return [attempt for attempt in contract.attempts(event.new) if attempt["operation"] not in known]


def _person(history: History, event: Event) -> None:
    change = event.obj
    mark = history.marks.setdefault(change["node"], Mark())
    mark.labels |= change["labels"]
    mark.annotations |= change["annotations"]
    mark.taints += change["taints"]
    mark.cordon = (mark.cordon or change["cordon"]) and not change.get("uncordon")


def _killed(history: History, event: Event) -> None:
    for uid, tracked in history.tracked.items():
        if tracked.gone is None and tracked.kind in (CASES, OPERATIONS, contract.TICKETS):
            history.survivors[uid] = (event.at, tracked, tracked.last)


def _tick(history: History, event: Event) -> None:
    history.since, history.ticked = history.ticked, event.at
    for tracked in history.open.values():
        waits = contract.gates(tracked.last) or history.stopped(tracked.last)
        if tracked.claimed and (waits or full(history)):
            tracked.stood += history.ticked - max(history.since, tracked.claimed)
    for node in history.leases:
        _held_by_others(history, node)
    if history.unreachable:
        _silent(history)


def _silent(history: History) -> None:
    for pod in history.objects[PODS].values():
        case = history.tracked.get(part(pod, "metadata", "labels").get(contract.CASE_UID, ""))
        if case and pod_words.template(pod) and part(pod, "spec").get("nodeName") in history.unreachable:
            case.silent = history.at


def _reboot(history: History, event: Event) -> None:
    history.reboots.append(event.obj)


def _absent(history: History, event: Event) -> None:
    """Whether anybody of us can act from now on."""
    since, until = history.absences[-1] if history.absences else (history.at, history.at)
    if event.obj["absent"] and until is not None:
        history.absences.append((history.at, None))
    elif not event.obj["absent"] and until is None:
        history.absences[-1] = (since, history.at)


def _issues(history: History, event: Event) -> None:
    history.issues = event.obj["issues"]


def _confirmed(history: History, event: Event) -> None:
    history.confirmed[event.obj["node"], event.obj["condition"]] = history.at


def _renewed(history: History, event: Event) -> None:
    history.renewed[event.obj["node"]] = event.at


def full(history: History) -> bool:
    """Whether the breaker has no start left."""
    limits = history.limits
    return sum(start.at > history.at - limits.breaker_window for start in history.starts) >= limits.breaker_starts


_TAKE: dict[str, Callable[[History, Event], None]] = {
    NAMESPACES: _namespace,
    POLICIES: _policy,
    TEMPLATES: _template,
    BUDGETS: _budget,
    NODES: _node,
    PODS: _pod,
    CASES: _case,
    OPERATIONS: _operation,
    **dict.fromkeys(REQUESTS, _request),
    LEASES: _lease,
    PERSON: _person,
    KILLED: _killed,
    TICK: _tick,
    REBOOT: _reboot,
    ABSENT: _absent,
    ISSUES: _issues,
    CONFIRMED: _confirmed,
    RENEWED: _renewed,
}
