"""Lint: what an API server would refuse, and what it would not notice, found in files."""

import pytest
import yaml

from remediator.kube.manifests import dead_nodes, decoded, lint
from tests.remediator.kube.manifests.examples import SPECS, TYPOS, WRONG, Object, manifest

KNOWN = {"reboot", "a"}


def fields(document: Object) -> dict[str, str]:
    return {finding.field: finding.message for finding in lint.lint([("x.yaml:1", document)], KNOWN)}


@pytest.mark.parametrize("kind", SPECS)
def test_a_good_manifest_has_no_finding(kind: str) -> None:
    assert fields(manifest(kind)) == {}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_value_is_named_by_its_field(case: str) -> None:
    document, field = WRONG[case]
    assert list(fields(document)) == ["" if field == "<nil>" else field]


@pytest.mark.parametrize("case", TYPOS)
def test_a_mistyped_field_is_named(case: str) -> None:
    document, field = TYPOS[case]
    assert fields(document)[field].startswith("unknown field; ")


@pytest.mark.parametrize("key", ["rack", "topology.kubernetes.io/rack", f"{'.'.join(['d' * 63] * 4)[:253]}/{'r' * 63}"])
def test_a_label_key_of_up_to_317_characters_is_taken(key: str) -> None:
    assert fields(manifest("NodeDisruptionBudget", groupBy=key)) == {}


@pytest.mark.parametrize("time", ["366d", "8784h", "527040m", "365d24h", "999999s", "59m60999ms", "1h5ms"])
def test_a_duration_of_up_to_366_days_is_taken(time: str) -> None:
    assert fields(manifest("RemediationPolicy", attempts={"window": time}, cooldown=time)) == {}


def test_a_duration_that_is_too_long_says_how_long_it_may_be() -> None:
    assert fields(manifest("RemediationPolicy", cooldown="367d")) == {
        "spec.cooldown": '"367d" must be at most 366d (8784h); write a shorter time'
    }


@pytest.mark.parametrize(
    ("kind", "spec", "field", "message"),
    [
        (
            "RemediationPolicy",
            {"attempts": {"window": "1ms"}},
            "spec.attempts.window",
            '"1ms" must be at least 1h; what is older is forgotten, so a short window sets no limit',
        ),
        (
            "RemediationPolicy",
            {"cooldown": "5 minutes"},
            "spec.cooldown",
            '"5 minutes" must be numbers with units (ms, s, m, h, d), such as 30s, 5m, 1h30m or 7d',
        ),
        (
            "RemediationPolicy",
            {"approval": True},
            "spec.approval",
            "true must be one of None, Required, as text: put it in quotes, "
            "for YAML reads yes, no, on and off as true or false",
        ),
        (
            "RemediationPolicy",
            {"nodeSelector": {"matchLabels": {"generation": 5}}},
            "spec.nodeSelector.matchLabels.generation",
            "5 must be text; put it in quotes",
        ),
        (
            "RemediationPolicy",
            {"nodeSelector": {"matchLabels": {"pool": "a", "zone": None}}},
            "spec.nodeSelector.matchLabels.zone",
            'has no value; write one ("" for an empty one), or remove it',
        ),
        ("RemediationPolicy", {"cooldwn": "5m"}, "spec.cooldwn", "unknown field; did you mean cooldown?"),
        (
            "RemediationPolicy",
            {"mode": None},
            "spec.mode",
            "is required; write one of DryRun, Enforce, Paused",
        ),
        (
            "NodeDisruptionBudget",
            {"breaker": {"failures": {"of": 2}}},
            "spec.breaker.failures",
            "most must not be more than of; write both, for most is 4 and of is 8 where they are left out",
        ),
        (
            "NodeDisruptionBudget",
            {"maxUnavailable": "half"},
            "spec.maxUnavailable",
            '"half" must be a number of nodes or a percentage: 5 or 10%',
        ),
        (
            "NodeOperationTemplate",
            {"after": ["reboot"]},
            "spec.after",
            "names this operation itself, which would run a second time; remove it",
        ),
    ],
)
def test_a_refusal_shows_the_value_and_what_to_write(kind: str, spec: Object, field: str, message: str) -> None:
    assert fields(manifest(kind, **spec)) == {field: message}


@pytest.mark.parametrize("window", ["1m", "10m", "600s", "1h30m", "41d"])
def test_the_window_of_a_breaker_is_a_duration_as_any_other(window: str) -> None:
    assert fields(manifest("NodeDisruptionBudget", breaker={"starts": 5, "window": window})) == {}


def test_an_empty_selector_is_right_where_all_nodes_are_meant() -> None:
    assert fields(manifest("RemediationPolicy", nodeSelector={}, allNodes=True)) == {}


def test_several_conditions_may_have_to_hold_together() -> None:
    when = [{"all": [{"condition": "A"}, {"condition": "B", "status": "False", "reasons": ["x"]}], "for": "0s"}]
    assert fields(manifest("RemediationPolicy", when=when)) == {}


def test_fields_inside_a_pod_template_are_left_alone() -> None:
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "anything": 1}]}}
    assert fields(manifest("NodeOperationTemplate", podTemplate=pod)) == {}


def test_a_status_is_checked_like_everything_else() -> None:
    document = manifest("NodeRemediation") | {"status": {"phase": "Lost", "startedAt": "today"}}
    assert set(fields(document)) == {"status.phase", "status.startedAt"}


@pytest.mark.parametrize(
    "cron", ["0 2 * * 1-5", "*/20 0-6 * jan,7 *", "30 22 1,15 * *", "0 2 * * sat,sun", "5 4 */2 * *"]
)
@pytest.mark.parametrize("duration", ["1m", "4h", "1h30m", "168h", "10080m"])
def test_crons_are_those_of_a_cronjob_and_durations_up_to_a_week(cron: str, duration: str) -> None:
    windows = [{"cron": cron, "duration": duration, "timeZone": "America/Argentina/Buenos_Aires"}]
    assert fields(manifest("RemediationPolicy", windows=windows)) == {}


@pytest.mark.parametrize("deadline", ["24h", "30m", "1500ms", "7d", "None", None])
def test_when_idle_has_a_deadline_or_none_or_that_of_a_day(deadline: str | None) -> None:
    urgency = {"mode": "WhenIdle"} | ({"deadline": deadline} if deadline else {})
    assert fields(manifest("RemediationPolicy", urgency=urgency)) == {}


@pytest.mark.parametrize(
    ("window", "field", "words"),
    [
        ({"timeZone": "Asia/Tokio"}, "timeZone", "'Asia/Tokio' is unknown"),
        ({"cron": "0 2 31 2 *"}, "cron", "never comes; correct the day and the month"),
        ({"cron": "0 5-2 * * *"}, "cron", "cannot be read"),
    ],
)
def test_what_a_schema_cannot_know_of_a_window_is_found_with_its_field_and_what_to_write(
    window: Object, field: str, words: str
) -> None:
    found = fields(manifest("RemediationPolicy", windows=[{"cron": "0 2 * * *", "duration": "4h"} | window]))
    assert list(found) == [f"spec.windows[0].{field}"]
    assert words in found[f"spec.windows[0].{field}"]


def test_all_findings_come_at_once() -> None:
    document = manifest("RemediationPolicy", mode=None, nodeSelector={}, cooldown=5, confirm={}, extra=1)
    assert set(fields(document)) == {
        "spec.mode",
        "spec.nodeSelector",
        "spec.cooldown",
        "spec.confirm.promQL",
        "spec.extra",
    }


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ('max(X{node="{{node}}"}) > bool 0', []),
        ('max(X{node="{{node}}"}', ["( is not closed; close it"]),
        ("X{node={{node}}}", ['{{node}} stands outside of quotes, where it is not replaced; write node="{{node}}"']),
    ],
)
def test_a_query_is_read_as_far_as_it_can_be_without_prometheus(query: str, found: list[str]) -> None:
    findings = lint.lint([("f:1", manifest("RemediationPolicy", confirm={"promQL": query}))], {"reboot"})
    assert [(finding.field, finding.message) for finding in findings] == [("spec.confirm.promQL", it) for it in found]


@pytest.mark.parametrize("spec", [None, [], "x", {"when": 1, "nodeSelector": [], "ladder": [1, {"operation": 2}]}])
def test_nonsense_is_a_finding_and_no_crash(spec: object) -> None:
    assert fields(manifest("RemediationPolicy") | {"spec": spec})


def test_an_unknown_operation_is_named_with_its_place_in_the_ladder() -> None:
    ladder = [{"operation": "reboot"}, {"operation": "rebot"}]
    found = fields(manifest("RemediationPolicy", ladder=ladder))
    assert found == {"spec.ladder[1].operation": "there is no NodeOperationTemplate named 'rebot'"}


def test_a_template_in_another_file_makes_an_operation_known() -> None:
    policy = ("a.yaml:1", manifest("RemediationPolicy", ladder=[{"operation": "reset"}]))
    template = ("b.yaml:1", manifest("NodeOperationTemplate", name="reset"))
    assert lint.lint([policy, template]) == []
    assert len(lint.lint([policy])) == 1


def test_two_objects_of_one_name_are_both_named() -> None:
    budget = manifest("NodeDisruptionBudget")
    found = lint.lint([("a.yaml:1", budget), ("a.yaml:9", budget)])
    assert [(finding.source, finding.object, finding.field) for finding in found] == [
        ("a.yaml:1", "NodeDisruptionBudget/reboot", "metadata.name"),
        ("a.yaml:9", "NodeDisruptionBudget/reboot", "metadata.name"),
    ]


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({}, "metadata.name"),
        ({"name": "GPU"}, "metadata.name"),
        ({"name": 5}, "metadata.name"),
        ({"name": "a", "lables": {}}, "metadata.lables"),
        (None, "metadata"),
    ],
)
def test_metadata_needs_a_name_and_known_fields(metadata: object, field: str) -> None:
    assert field in fields(manifest("RemediationPolicy") | {"metadata": metadata})


def test_another_version_and_an_unknown_kind_of_our_group_are_errors() -> None:
    assert list(fields(manifest("RemediationPolicy") | {"apiVersion": "remediator.dev/v1"})) == ["apiVersion"]
    assert list(fields(manifest("RemediationPolicies"))) == ["kind"]


def test_metadata_of_an_unknown_kind_is_looked_at_all_the_same() -> None:
    document = manifest("RemediationPolicies") | {"metadata": {"name": "a", "lables": {}}}
    assert set(fields(document)) == {"kind", "metadata.lables"}


def test_objects_of_others_are_passed_over() -> None:
    assert fields({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, "spec": {"x": 1}}) == {}


def test_a_finding_reads_as_one_line() -> None:
    finding = lint.LintError("a.yaml:3", "RemediationPolicy/x", "spec.mode", "is required")
    assert str(finding) == "a.yaml:3: RemediationPolicy/x: spec.mode: is required"


def test_every_document_of_a_file_knows_its_line() -> None:
    text = "# a comment\n\nkind: A\n---\n---\nkind: B\n---\nkind: List\nitems:\n- kind: C\n- kind: D\n"
    documents, findings = lint.read("x.yaml", text)
    assert [(source, document["kind"]) for source, document in documents] == [
        ("x.yaml:3", "A"),
        ("x.yaml:6", "B"),
        ("x.yaml:8", "C"),
        ("x.yaml:8", "D"),
    ]
    assert findings == []


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\n---\nb: [1\nc: 2\n", 4, "unreadable YAML"),
        ("a: 1\nb:\n  c: 2\n  c: 3\n", 4, "the key 'c' is given twice"),
        ("a: 1\n---\n- 1\n", 3, "is not an object"),
        ("a: 1\nb: \x00\n", 2, "unreadable YAML"),
        ("a: &b [*b]\n", 1, "an anchor contains itself"),
        ("a: *b\n", 1, "unreadable YAML"),
        ("b:\n  a: !!int x\n", 2, "unreadable YAML: 'x' is no int"),
        ("b:\n  a: !!bool x\n", 2, "unreadable YAML: 'x' is no bool"),
        ("b: !!int ''\n", 1, "unreadable YAML: '' is no int"),
        ("[" * 3000, 1, "more than 100 levels"),
        ("a: " + "[" * 150 + "]" * 150, 1, "more than 100 levels"),
        (
            "a0: &a0 [x]\n" + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(9)),
            1,
            "values",
        ),
        ("a: 1\n---\nkind: List\nitems: 5\n", 3, "is not an object"),
        ("kind: List\nitems: [5]\n", 1, "is not an object"),
        ("a: !!python/name:os.system x\n", 1, "unreadable YAML"),
        ("{[a]: b}\n", 1, "unreadable YAML"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(text: str, line: int, message: str) -> None:
    _, (finding,) = lint.read("x.yaml", text)
    assert finding.source == f"x.yaml:{line}"
    assert message in finding.message


def test_documents_before_a_syntax_error_are_still_read() -> None:
    documents, findings = lint.read("x.yaml", yaml.safe_dump(manifest("RemediationPolicy", mode=None)) + "---\n[\n")
    assert len(findings) == 1
    assert [finding.field for finding in lint.lint(documents, KNOWN)] == ["spec.mode"]


def test_a_date_stays_text_as_kubectl_reads_it() -> None:
    documents, _ = lint.read("x.yaml", "a: 2026-01-02T03:04:05Z\n")
    assert documents == [("x.yaml:1", {"a": "2026-01-02T03:04:05Z"})]


def test_a_policy_that_only_calls_a_person_needs_no_ladder_and_may_ask_for_a_silent_kubelet() -> None:
    when = [{"condition": "Ready", "status": "Unknown", "for": "10m"}]
    calls = {"urgency": {"mode": "Never"}, "ticket": {"when": "Always", "route": "gpu"}, "correlation": {"nodes": 3}}
    assert fields(manifest("RemediationPolicy", when=when, ladder=None, **calls)) == {}


def _about_dead_nodes(**template: object) -> list[str]:
    """What is found in a policy on Ready Unknown with one rung, and the template of that."""
    when = [{"condition": "Ready", "status": "Unknown"}]
    policy = manifest("RemediationPolicy", when=when, ladder=[{"operation": "cycle"}])
    spec = {"drain": {"strategy": "None"}, "runOn": "Elsewhere"} | template
    documents = [policy, manifest("NodeOperationTemplate", name="cycle", **spec)]
    findings = lint.lint([("x.yaml:1", document) for document in documents], KNOWN)
    return [str(finding) for finding in findings if finding.object.startswith("RemediationPolicy/")]


@pytest.mark.parametrize("run_on", ["Elsewhere", "Watchdog"])
def test_on_ready_unknown_an_operation_that_needs_no_kubelet_and_drains_nothing_is_right(run_on: str) -> None:
    assert _about_dead_nodes(runOn=run_on) == []


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (
            {"runOn": "Target"},
            "'cycle' runs on the node, whose kubelet does not report: name operations whose",
        ),
        ({"drain": {"strategy": "Evict"}}, "'cycle' drains the node, and no Pod of a node whose kubelet does not"),
    ],
)
def test_on_ready_unknown_what_runs_on_the_node_or_drains_it_is_named(template: Object, words: str) -> None:
    (finding,) = _about_dead_nodes(**template)
    assert finding.startswith("x.yaml:1: RemediationPolicy/")
    assert f"spec.ladder[0].operation: {words}" in finding


UNKNOWN, LOST = {"condition": "Ready", "status": "Unknown"}, {"condition": "GpuLost"}


@pytest.mark.parametrize(
    ("when", "force", "found", "warned"),
    [
        pytest.param([UNKNOWN], "true", [], [], id="silent nodes alone"),
        pytest.param([LOST], "true", [], [], id="nodes that are alive alone"),
        pytest.param(
            [UNKNOWN, LOST],
            "true",
            [
                "spec.ladder[0].parameters.force: 'cycle' acts also on a node that is alive, for spec.when[1], and "
                "nothing is drained: make Ready Unknown a policy of its own, or take force out"
            ],
            ["spec.when[1] is about a node that is alive, and the ladder of a policy on Ready Unknown runs and drains"],
            id="both, by force",
        ),
        pytest.param(
            [LOST, UNKNOWN],
            "false",
            [],
            ["spec.when[0] is about a node that is alive, and the ladder of a policy on Ready Unknown runs and drains"],
            id="both",
        ),
    ],
)
def test_ready_unknown_beside_a_fault_of_nodes_that_are_alive_is_named(
    when: list[Object], force: str, found: list[str], warned: list[str]
) -> None:
    policy = manifest(
        "RemediationPolicy", when=when, ladder=[{"operation": "cycle", "parameters": {"force": force}}], name="dead"
    )
    template = manifest("NodeOperationTemplate", name="cycle", drain={"strategy": "None"}, runOn="Elsewhere")
    documents = [("x.yaml:1", document) for document in (policy, template)]
    findings = [f"{finding.field}: {finding.message}" for finding in lint.lint(documents, KNOWN)]
    warnings = list(dead_nodes.warnings(decoded.disturbing(documents)))
    assert findings == found
    assert [
        warning.removeprefix("policy dead: ")[: len(start)] for warning, start in zip(warnings, warned, strict=True)
    ] == warned


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        ({"repository": "ml"}, "spec.repository", "must be owner/name, such as org/ml"),
        ({"match": {}}, "spec.match", "give severity or labels: {} would be every issue"),
        ({"match": {"severity": ["Bad"]}}, "spec.match.severity[0]", ""),
        ({"match": {"labels": {"team": []}}}, "spec.match.labels.team", ""),
        ({"labels": ["x" * 51]}, "spec.labels[0]", ""),
        ({"assignees": list("abcdefghijk")}, "spec.assignees", ""),
        ({"template": "a.md.j2"}, "spec.template", "unknown field"),
    ],
)
def test_what_is_wrong_with_a_ticket_route_is_named_with_what_to_write(spec: Object, field: str, words: str) -> None:
    good = {"repository": "org/ml", "match": {"labels": {"team": ["ml"]}}, "milestone": "2026-Q4"}
    assert fields(manifest("TicketRoute", **good)) == {}
    wrong = fields(manifest("TicketRoute", **(good | spec)))
    assert list(wrong) == [field]
    assert words in wrong[field]


def test_ticket_routes_of_two_namespaces_may_have_one_name() -> None:
    good = {"repository": "org/ml", "match": {"severity": ["Critical"]}}
    first, second = (manifest("TicketRoute", **good) for _ in range(2))
    first["metadata"]["namespace"], second["metadata"]["namespace"] = "ml", "hw"
    assert lint.lint([("a.yaml:1", first), ("a.yaml:9", second)]) == []
    second["metadata"]["namespace"] = "ml"
    assert len(lint.lint([("a.yaml:1", first), ("a.yaml:9", second)])) == 2


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        ({"namespaces": []}, "spec.namespaces", ""),
        ({"signals": [{"series": "max(a)"}]}, "spec.signals[0].series", "must be the name of a metric"),
        ({"signals": [{"series": 'a{b="c"} or up'}]}, "spec.signals[0].series", "must be the name of a metric"),
        ({"idleFor": "5m"}, "spec.idleFor", "must be at least 10m"),
        ({"grace": "0s"}, "spec.grace", "must be at least 10m; whoever is told needs time"),
        ({"actions": ["Evict"]}, "spec.actions[0]", ""),
        ({"finds": "Idle", "signals": []}, "spec.finds", ""),
        ({"finds": "Alert", "signals": []}, "spec.alert", "alert must be given for finds Alert, and only for it"),
        ({"alert": "A"}, "spec.alert", "alert must be given for finds Alert, and only for it"),
        ({"finds": "Restarts"}, "spec.signals", "signals go with finds IdleGPUs and IdleCPU only; remove them"),
        ({"windows": [{"cron": "0 9 31 2 *", "duration": "1h"}]}, "spec.windows[0].cron", "never comes"),
    ],
)
def test_what_is_wrong_with_an_idle_policy_is_named_with_what_to_write(spec: Object, field: str, words: str) -> None:
    good = {"namespaces": ["team"], "signals": [{"series": 'DCGM_FI_PROF_GR_ENGINE_ACTIVE{cluster="a",pool=~"x|y"}'}]}
    assert fields(manifest("IdlePolicy", **good)) == {}
    wrong = fields(manifest("IdlePolicy", **(good | spec)))
    assert list(wrong) == [field]
    assert words in wrong[field]
