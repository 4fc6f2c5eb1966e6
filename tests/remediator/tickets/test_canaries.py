"""The secret of GitHub's posts and the token show nowhere while comments are read and obeyed, and cards are moved."""

import hashlib
import hmac
import json
from pathlib import Path

import pytest

from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.github import FakeGitHub, GithubFault
from remediator_sim.ports import free_ports
from tests.harness.canaries import Seen, asked, running, stored
from tests.harness.cluster import MemoryCluster, with_kinds
from tests.harness.kinds import TICKETS
from tests.harness.tickets import delivery, fires
from tests.harness.waiting import until

pytestmark = pytest.mark.sampled("canaries")

HOOK, WEBHOOK, REPO = "canary-of-githubs-posts-66d1", "canary-of-the-webhook-0fe2", "org/ops"
ROUTES = f"default: {{repository: {REPO}, commands: true, board: {{project: org/7}}}}\n"
OPTIONS = ("--github-spacing=0", "--issues-per-hour=0")


def post(number: int, comment: int) -> bytes:
    """What GitHub posts of a new comment."""
    about = {"action": "created", "repository": {"full_name": REPO}, "issue": {"number": number}}
    return json.dumps({**about, "comment": {"id": comment, "body": "/why", "user": {"login": "ann"}}}).encode()


def signed(body: bytes, secret: str = HOOK) -> dict[str, str]:
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-GitHub-Event": "issue_comment", "X-Hub-Signature-256": f"sha256={signature}"}


@pytest.mark.timeout(600)
async def test_comments_posts_and_boards_show_no_secret_whatever_github_answers(tmp_path: Path) -> None:
    """A signed post, unsigned ones, one that holds the secret, a secret of two lines; board and comments fail."""
    seen, cluster = Seen(), MemoryCluster(EmbeddedServer(like=with_kinds()))
    port, posts, hooks = free_ports(3)
    door = f"https://127.0.0.1:{hooks}/webhooks/github"
    for name, text in {"routes.yaml": ROUTES, "hook": HOOK, "webhook": WEBHOOK}.items():
        (tmp_path / name).write_text(text)
    async with FakeGitHub([REPO], ["ann"]) as fake, cluster.server.serve() as endpoint:
        (tmp_path / "github").write_text(fake.token)
        fake.project("org", 7, "Status", "Todo", "In Progress", "Done")
        for status in (401, 403, 502, 200):
            repeated = GithubFault(status, text=f"<html>you sent Authorization: token {fake.token}</html>")
            fake.fail("POST", "graphql", repeated)
            fake.fail("GET", "/comments", repeated)
        options = [f"--routes={tmp_path}/routes.yaml", f"--github-token-file={tmp_path}/github"]
        options += [f"--github-webhook-secret-file={tmp_path}/hook", f"--webhook-token-file={tmp_path}/webhook"]
        options += [f"--listen-github=127.0.0.1:{hooks}", f"--listen-webhook=127.0.0.1:{posts}"]
        options += [f"--listen=127.0.0.1:{port}", f"--github-url={fake.url}", f"--kubeconfig={endpoint.kubeconfig}"]
        async with running(seen, tmp_path / "log", *options, *OPTIONS):
            alerts, hook = delivery(fires("Alert1", node="")), f"https://127.0.0.1:{posts}/webhooks/alertmanager"

            async def taken() -> bool:
                return await asked(seen, "POST", hook, alerts, WEBHOOK) == 200

            await until(taken, 120)
            await until(lambda: fake.issues(REPO), 120)
            (issue,) = fake.issues(REPO)
            comment = fake.person("ann").comment(REPO, issue.number, "/why")

            async def heard() -> bool:
                body = post(issue.number, comment)
                await asked(seen, "POST", door, body, **signed(body))
                (ticket,) = await cluster.client.list_all(TICKETS)
                return "remediator.dev/comment-hint" in ticket["metadata"].get("annotations", {})

            await until(heard, 120)
            await until(lambda: any("graphql" in one.path for one in fake.requests), 120)
            body = HOOK.encode()
            assert await asked(seen, "POST", door, body, **signed(body)) == 400
            assert await asked(seen, "POST", door, body, **signed(body, HOOK + "x")) == 401
            assert await asked(seen, "POST", door, body) == 401
            (tmp_path / "hook").write_text(f"{HOOK}\n{HOOK}")
            assert await asked(seen, "POST", door, body, **signed(body)) == 401
            assert await asked(seen, "GET", f"http://127.0.0.1:{port}/metrics") == 200
        seen.add("objects and events", stored(cluster.server))
        seen.add("issues", *fake.issues(REPO), *(one.body for one in fake.requests))
    assert seen.shows(["remediator.dev/comment-hint"]), "what was written was looked at"
    assert seen.shows([fake.token, HOOK, WEBHOOK]) == []
