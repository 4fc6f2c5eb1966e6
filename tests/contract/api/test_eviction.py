"""Evicting Pods, with and without a PodDisruptionBudget in the way."""

import uuid

import pytest

from tests.contract.api.calls import fresh
from tests.harness.waiting import until


def eviction(name: str, **options) -> dict:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return {**body, "deleteOptions": options} if options else body


@pytest.fixture
def budgets(space):
    return f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets"


@pytest.fixture
def ready_pod(api, pods, pod):
    """Creates Pods that count as healthy for budgets."""

    async def create(name: str, **labels: str) -> dict:
        (await api.post(pods, pod(name, labels=labels))).ok(201)
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        return (await api.patch(f"{pods}/{name}/status", {"status": status})).ok()

    return create


async def budget(api, budgets: str, allowed: int, **spec) -> str:
    """A budget over app=x, once it is known to allow that many evictions."""
    name = fresh("pdb")
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, **spec},
    }
    (await api.post(budgets, body)).ok(201)
    await until(lambda: allows(api, f"{budgets}/{name}", allowed))
    return name


async def allows(api, path: str, count: int) -> bool:
    """Whether a budget allows that many, as so many more are healthy than must be.

    None allowed is also what is said before the first Pod is known to be Ready; then too few are.
    """
    found = (await api.get(path)).ok()
    status = found.get("status", {})
    if status.get("observedGeneration") != found["metadata"]["generation"]:
        return False
    return status["disruptionsAllowed"] == count == status["currentHealthy"] - status["desiredHealthy"]


async def is_marked(api, path: str) -> bool:
    answer = await api.get(path)
    return answer.status == 404 or "deletionTimestamp" in answer.body["metadata"]


async def test_an_eviction_marks_the_pod(api, pods, ready_pod):
    await ready_pod("p")
    answer = (await api.post(f"{pods}/p/eviction", eviction("p"))).ok(201)
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert (await api.get(f"{pods}/p")).ok()["metadata"]["deletionTimestamp"]


async def test_an_eviction_takes_the_grace_of_its_options(api, pods, ready_pod):
    await ready_pod("p")
    (await api.post(f"{pods}/p/eviction", eviction("p", gracePeriodSeconds=4))).ok(201)
    assert (await api.get(f"{pods}/p")).ok()["metadata"]["deletionGracePeriodSeconds"] == 4


async def test_an_evicted_pod_can_be_evicted_again(api, pods, ready_pod):
    await ready_pod("p")
    (await api.post(f"{pods}/p/eviction", eviction("p"))).ok(201)
    (await api.post(f"{pods}/p/eviction", eviction("p"))).ok(201)


async def test_evicting_what_is_not_there_is_not_found(api, pods):
    body = (await api.post(f"{pods}/absent/eviction", eviction("absent"))).refused(404, "NotFound")
    assert body["details"]["name"] == "absent"


async def test_an_eviction_under_another_name_is_refused(api, pods, ready_pod):
    await ready_pod("p")
    (await api.post(f"{pods}/p/eviction", eviction("q"))).refused(400, "BadRequest")


async def test_an_eviction_under_another_uid_is_a_conflict(api, pods, ready_pod):
    await ready_pod("p")
    body = eviction("p", preconditions={"uid": str(uuid.uuid4())})
    (await api.post(f"{pods}/p/eviction", body)).refused(409, "Conflict")
    assert not await is_marked(api, f"{pods}/p")


async def test_an_eviction_under_its_own_uid_is_done(api, pods, ready_pod):
    uid = (await ready_pod("p"))["metadata"]["uid"]
    (await api.post(f"{pods}/p/eviction", eviction("p", preconditions={"uid": uid}))).ok(201)
    assert await is_marked(api, f"{pods}/p")


async def test_a_dry_run_of_an_eviction_marks_nothing(api, pods, ready_pod):
    await ready_pod("p")
    (await api.post(f"{pods}/p/eviction", eviction("p", dryRun=["All"]))).ok(201)
    assert not await is_marked(api, f"{pods}/p")


async def test_a_budget_that_is_spent_refuses_and_says_why(api, pods, ready_pod, budgets):
    await ready_pod("p", app="x")
    name = await budget(api, budgets, 0, minAvailable=1)
    answer = await api.post(f"{pods}/p/eviction", eviction("p"))
    body = answer.refused(429, "TooManyRequests")
    assert body["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    (cause,) = body["details"]["causes"]
    assert cause["reason"] == "DisruptionBudget"
    assert f"The disruption budget {name} needs 1 healthy pods and has 1 currently" in cause["message"]
    assert not await is_marked(api, f"{pods}/p")


async def test_a_dry_run_meets_the_budget_too(api, pods, ready_pod, budgets):
    await ready_pod("p", app="x")
    await budget(api, budgets, 0, minAvailable=1)
    answer = await api.post(f"{pods}/p/eviction", eviction("p", dryRun=["All"]))
    answer.refused(429, "TooManyRequests")


async def test_a_budget_lets_through_what_it_allows(api, pods, ready_pod, budgets):
    for name in ("p", "q"):
        await ready_pod(name, app="x")
    name = await budget(api, budgets, 1, minAvailable=1)
    (await api.post(f"{pods}/p/eviction", eviction("p"))).ok(201)
    (await api.post(f"{pods}/q/eviction", eviction("q"))).refused(429, "TooManyRequests")
    await until(lambda: allows(api, f"{budgets}/{name}", 0))


async def test_a_budget_allows_again_when_a_pod_becomes_healthy(api, pods, ready_pod, budgets):
    await ready_pod("p", app="x")
    name = await budget(api, budgets, 0, minAvailable=1)
    await ready_pod("q", app="x")
    await until(lambda: allows(api, f"{budgets}/{name}", 1))
    (await api.post(f"{pods}/p/eviction", eviction("p"))).ok(201)


async def test_a_budget_shows_what_it_counts(api, pods, ready_pod, pod, budgets):
    await ready_pod("p", app="x")
    (await api.post(pods, pod("sick", labels={"app": "x"}))).ok(201)
    name = await budget(api, budgets, 0, minAvailable=1)

    async def counted():
        status = (await api.get(f"{budgets}/{name}")).ok()["status"]
        return status if status["expectedPods"] == 2 else None

    status = await until(counted)
    assert (status["currentHealthy"], status["desiredHealthy"]) == (1, 1)


async def test_a_sick_pod_is_evicted_when_the_budget_has_enough_healthy_ones(api, pods, ready_pod, pod, budgets):
    await ready_pod("p", app="x")
    (await api.post(pods, pod("sick", labels={"app": "x"}))).ok(201)
    (await api.patch(f"{pods}/sick/status", {"status": {"phase": "Running"}})).ok()
    await budget(api, budgets, 0, minAvailable=1)
    (await api.post(f"{pods}/sick/eviction", eviction("sick"))).ok(201)


async def test_a_pending_pod_is_evicted_whatever_the_budget(api, pods, ready_pod, pod, budgets):
    await ready_pod("p", app="x")
    await budget(api, budgets, 0, minAvailable=1)
    (await api.post(pods, pod("waiting", labels={"app": "x"}))).ok(201)
    (await api.post(f"{pods}/waiting/eviction", eviction("waiting"))).ok(201)


async def test_a_finished_pod_is_evicted_whatever_the_budget(api, pods, ready_pod, pod, budgets):
    await ready_pod("p", app="x")
    await budget(api, budgets, 0, minAvailable=1)
    (await api.post(pods, pod("done", labels={"app": "x"}))).ok(201)
    (await api.patch(f"{pods}/done/status", {"status": {"phase": "Succeeded"}})).ok()
    (await api.post(f"{pods}/done/eviction", eviction("done"))).ok(201)
    (await api.get(f"{pods}/done")).refused(404, "NotFound")


async def test_a_budget_over_other_pods_is_not_asked(api, pods, ready_pod, budgets):
    await ready_pod("p", app="x")
    await ready_pod("free", app="y")
    await budget(api, budgets, 0, minAvailable=1)
    (await api.post(f"{pods}/free/eviction", eviction("free"))).ok(201)


async def test_two_budgets_over_one_pod_refuse_as_an_error_of_the_server(api, pods, ready_pod, budgets):
    await ready_pod("p", app="x")
    for _ in range(2):
        await budget(api, budgets, 0, minAvailable=1)
    answer = await api.post(f"{pods}/p/eviction", eviction("p"))
    assert (answer.status, answer.body["kind"]) == (500, "Status")
    assert "more than one PodDisruptionBudget" in answer.body["message"]


async def test_a_budget_may_not_have_both_limits(api, budgets):
    spec = {"minAvailable": 1, "maxUnavailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    (await api.post(budgets, {"metadata": {"name": "both"}, "spec": spec})).refused(422, "Invalid")
