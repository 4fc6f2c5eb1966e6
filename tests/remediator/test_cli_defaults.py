"""`remediator defaults` and `crds --apply`: an upgrade leaves alone what a user has edited, and says so."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from remediator.core.names import DEFAULTS_CONFIG, SHIPPED, SYSTEM_NAMESPACE
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from tests.harness.controller import ControllerHarness
from tests.harness.kinds import BUDGETS, CRDS, POLICIES
from tests.remediator.test_cli import beside, remediator

ROOT = Path(__file__).parents[2]
CONFIGS = Kind("", "v1", "configmaps", "ConfigMap", dict, namespaced=True)
POLICY, BUDGET = "RemediationPolicy/gpu-lost", "NodeDisruptionBudget/default"


async def furnished() -> ControllerHarness:
    harness = ControllerHarness()
    metadata = {"name": DEFAULTS_CONFIG, "namespace": SYSTEM_NAMESPACE}
    await harness.client.create(CONFIGS, {"metadata": metadata}, namespace=SYSTEM_NAMESPACE)
    return harness


def shipped(folder: Path, **replaced: str) -> Path:
    """A shipped policy and budget, as a version has them."""
    folder.mkdir(exist_ok=True)
    for path in ("policies/gpu-lost.yaml", "budgets/default.yaml"):
        text = (ROOT / "deploy" / path).read_text()
        for old, new in replaced.items():
            text = text.replace(f"{old}: ", f"{old}: {new}  # ")
        (folder / path.replace("/", "-")).write_text(text)
    return folder


async def defaults(harness: ControllerHarness, folder: Path, *words: str) -> tuple[int, list[str], str]:
    async with harness.server.serve() as endpoint:
        code, out, err = await beside("defaults", folder, *words, "--kubeconfig", endpoint.kubeconfig)
    return code, out.splitlines(), err


async def spec(harness: ControllerHarness, kind: Any, name: str) -> dict[str, Any]:
    return (await harness.client.get(kind, name))["spec"]


async def report(harness: ControllerHarness) -> str:
    return (await harness.client.get(CONFIGS, DEFAULTS_CONFIG, namespace=SYSTEM_NAMESPACE))["data"]["report"]


async def test_a_first_install_makes_them_and_a_second_run_changes_nothing(tmp_path):
    harness = await furnished()
    assert await defaults(harness, shipped(tmp_path)) == (
        *(0, [f"{BUDGET}: created", f"{POLICY}: created", "0 of 2 were as shipped already"]),
        "",
    )
    before = [await harness.client.get(kind, name) for kind, name in ((BUDGETS, "default"), (POLICIES, "gpu-lost"))]
    assert await defaults(harness, tmp_path) == (0, ["2 of 2 were as shipped already"], "")
    after = [await harness.client.get(kind, name) for kind, name in ((BUDGETS, "default"), (POLICIES, "gpu-lost"))]
    assert after == before
    assert await report(harness) == "all is as shipped"


async def test_an_upgrade_updates_what_nobody_edited_and_leaves_what_a_user_enforces(tmp_path):
    harness = await furnished()
    await defaults(harness, shipped(tmp_path))
    await harness.client.patch(POLICIES, "gpu-lost", {"spec": {"mode": "Enforce"}})
    await harness.client.patch(BUDGETS, "default", {"metadata": {"annotations": {"team": "hpc"}}})
    edited = await spec(harness, POLICIES, "gpu-lost")

    code, lines, err = await defaults(harness, shipped(tmp_path, cooldown="1h", maxUnavailable="3%"))
    assert (code, lines, err) == (
        0,
        [
            f"{BUDGET}: updated",
            f"{POLICY}: left alone, since it was edited here; as shipped it would differ:",
            '  spec.cooldown: "30m" here, "1h" shipped',
            '  spec.mode: "Enforce" here, "DryRun" shipped',
            "0 of 2 were as shipped already",
        ],
        "",
    )
    assert await report(harness) == "\n".join(lines[:-1])
    assert await spec(harness, POLICIES, "gpu-lost") == edited
    budget = await harness.client.get(BUDGETS, "default")
    assert (budget["spec"]["maxUnavailable"], budget["metadata"]["annotations"]["team"]) == ("3%", "hpc")


async def test_a_field_that_is_no_longer_shipped_goes_and_one_that_a_user_added_keeps_all_as_it_is(tmp_path):
    harness = await furnished()
    await defaults(harness, shipped(tmp_path))
    assert "relapse" in await spec(harness, POLICIES, "gpu-lost")
    path = tmp_path / "policies-gpu-lost.yaml"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if "relapse" not in line))
    await harness.client.patch(BUDGETS, "default", {"spec": {"maxQuarantined": "30%"}})
    _, lines, _ = await defaults(harness, tmp_path)
    assert lines[:2] == [
        f"{BUDGET}: left alone, since it was edited here; as shipped it would differ:",
        '  spec.maxQuarantined: "30%" here, "20%" shipped',
    ]
    assert "relapse" not in await spec(harness, POLICIES, "gpu-lost")


async def test_what_a_user_has_deleted_stays_away_until_it_is_asked_for(tmp_path):
    harness = await furnished()
    await defaults(harness, shipped(tmp_path))
    await harness.client.delete(POLICIES, "gpu-lost")
    assert f"{POLICY}: not created again" in (await defaults(harness, tmp_path))[1][0]
    with pytest.raises(errors.NotFound):
        await harness.client.get(POLICIES, "gpu-lost")
    assert (await defaults(harness, tmp_path, "--restore", POLICY))[1][0] == f"{POLICY}: created"
    await harness.client.patch(POLICIES, "gpu-lost", {"spec": {"mode": "Enforce"}})
    assert (await defaults(harness, tmp_path, "--restore", POLICY))[1][0] == f"{POLICY}: updated"
    assert (await spec(harness, POLICIES, "gpu-lost"))["mode"] == "DryRun"


async def test_what_kubectl_has_applied_is_taken_over_where_it_is_as_shipped(tmp_path):
    harness = await furnished()
    await harness.make(BUDGETS, "default", selector={}, maxUnavailable="5%", fallback=True)
    assert (await defaults(harness, shipped(tmp_path)))[1][0] == f"{BUDGET}: taken over, since it is as shipped"
    assert SHIPPED in (await harness.client.get(BUDGETS, "default"))["metadata"]["annotations"]


async def test_a_note_that_is_no_json_counts_as_none(tmp_path):
    harness = await furnished()
    await harness.make(BUDGETS, "default", selector={}, maxUnavailable="7%", fallback=True)
    await harness.client.patch(BUDGETS, "default", {"metadata": {"annotations": {SHIPPED: "{"}}})
    assert "left alone" in (await defaults(harness, shipped(tmp_path)))[1][0]


async def test_one_that_the_server_refuses_is_named_with_the_remedy_and_the_others_are_made(tmp_path):
    harness = await furnished()
    path = shipped(tmp_path) / "budgets-default.yaml"
    path.write_text(path.read_text().replace("name: default", "name: Default"))  # no name that a server takes
    code, lines, err = await defaults(harness, tmp_path)
    assert (code, lines[0], lines[3:]) == (
        4,
        "NodeDisruptionBudget/Default: refused by the API server",
        [f"{POLICY}: created", "0 of 2 were as shipped already"],
    )
    assert "metadata.name" in lines[1]
    assert lines[2].startswith("  run `remediator crds --apply` of this version")
    assert err == (
        "remediator: 1 of 2 refused: NodeDisruptionBudget/Default; what helps stands under each above, "
        "and the others are done\n"
    )
    assert (await report(harness)).splitlines() == lines[:-1]
    path.write_text(path.read_text().replace("name: Default", "name: default"))
    assert (await defaults(harness, tmp_path))[1] == [f"{BUDGET}: created", "1 of 2 were as shipped already"]


@pytest.mark.parametrize("writes", range(1, 5))
async def test_a_run_that_was_stopped_after_any_write_takes_none_of_its_own_for_an_edit(tmp_path, monkeypatch, writes):
    """4 writes: each object, and after each the ConfigMap."""
    harness, plain, written = await furnished(), Client.send, 0

    async def stopped(self: Client, *asked: Any, **more: Any) -> Any:
        nonlocal written
        answer, written = await plain(self, *asked, **more), written + 1
        if written >= writes:
            raise errors.Unavailable(0, "", "stopped")
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(Client, "send", stopped)
        assert (await defaults(harness, shipped(tmp_path)))[0] == 2
    if writes > 1:
        await harness.client.delete(BUDGETS, "default")
    code, lines, _ = await defaults(harness, tmp_path)
    assert (code, any("left alone" in line for line in lines)) == (0, False)
    assert any(f"{BUDGET}: not created again" in line for line in lines) == (writes > 1)


@pytest.mark.slow
async def test_a_rollback_below_newer_definitions_takes_back_what_nobody_edited(tmp_path):
    """The definitions stay new, and their server adds a field that the older version does not know."""
    harness = await furnished()
    await defaults(harness, shipped(tmp_path))
    budget = await harness.client.get(CRDS, "nodedisruptionbudgets.remediator.dev")
    fields = budget["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields["tomorrow"] = {"type": "string", "default": "yes"}
    await harness.client.replace(CRDS, "nodedisruptionbudgets.remediator.dev", budget)
    newer = await spec(harness, BUDGETS, "default") | {"maxUnavailable": "9%", "tomorrow": "yes"}
    note = {"metadata": {"annotations": {SHIPPED: json.dumps(newer)}}}
    await harness.client.patch(BUDGETS, "default", {**note, "spec": newer})

    assert (await defaults(harness, tmp_path))[1] == [f"{BUDGET}: updated", "1 of 2 were as shipped already"]
    went_back = await spec(harness, BUDGETS, "default")
    assert (went_back["maxUnavailable"], went_back["tomorrow"]) == ("5%", "yes")
    assert (await defaults(harness, tmp_path))[1] == ["2 of 2 were as shipped already"]
    assert (await defaults(harness, shipped(tmp_path, maxUnavailable="3%")))[1][0] == f"{BUDGET}: updated"
    await harness.client.patch(BUDGETS, "default", {"spec": {"tomorrow": "no"}})
    assert "left alone, since it was edited here" in (await defaults(harness, shipped(tmp_path)))[1][0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [", "line 1: expected the node content, but found '<stream end>'"),
        ("kind: Pod\nmetadata: {name: a}\nspec: {}\n", "no policy, budget or template: 'Pod'"),
        ("[]\n", "no policy, budget or template: list indices must be integers or slices, not str"),
    ],
)
def test_a_folder_that_holds_something_else_is_refused(tmp_path, text, why):
    (tmp_path / "a.yaml").write_text(text)
    done = remediator("defaults", tmp_path)
    assert (done.exit_code, done.stderr) == (2, f"remediator: {tmp_path}/a.yaml: {why}\n")


def test_an_empty_folder_and_a_name_that_is_not_shipped_are_refused(tmp_path):
    assert "no .yaml file in" in remediator("defaults", tmp_path).stderr
    refused = remediator("defaults", shipped(tmp_path), "--restore", "RemediationPolicy/gpu-lots")
    why = f"nothing of this name is shipped; write KIND/NAME, such as {BUDGET}"
    assert (refused.exit_code, refused.stderr) == (2, f"remediator: --restore RemediationPolicy/gpu-lots: {why}\n")


@pytest.mark.slow
async def test_definitions_are_made_brought_up_to_date_and_left_alone_where_they_are_newer():
    harness = ControllerHarness()
    name = "remediationpolicies.remediator.dev"
    whole = await harness.client.get(CRDS, name)
    older, newer = deepcopy(whole), deepcopy(whole)
    fields = "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties"

    def properties(definition: Any) -> Any:
        for step in fields:
            definition = definition[step]
        return definition

    async def apply() -> list[str]:
        async with harness.server.serve() as endpoint:
            code, out, err = await beside("crds", "--apply", "--kubeconfig", endpoint.kubeconfig)
        assert (code, err) == (0, "")
        return [line for line in out.splitlines() if line.startswith(name)]

    del properties(older)["cooldown"]
    older["metadata"]["annotations"] = {"kept": "yes"}
    await harness.client.replace(CRDS, name, older)
    assert await apply() == [f"{name}: up to date"]
    mended = await harness.client.get(CRDS, name)
    assert properties(mended) == properties(whole)
    assert mended["metadata"]["annotations"] == {"kept": "yes"}

    newer["metadata"] = mended["metadata"]
    properties(newer)["tomorrow"] = {"type": "string"}
    await harness.client.replace(CRDS, name, newer)
    assert await apply() == [f"{name}: left alone, since it is of a newer version: it has .spec.tomorrow"]

    await harness.client.delete(CRDS, name)
    assert await apply() == [f"{name}: created"]


def test_crds_writes_into_a_folder_or_into_a_cluster(tmp_path):
    assert "give one of them" in remediator("crds", "--apply", "--output", tmp_path).stderr
