"""GitHub's own GraphQL schema, and the library of those who specify GraphQL, judge what is asked about boards."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from remediator.clock import SYSTEM
from remediator.tickets.channels.base import Draft, Marker, Refused
from remediator.tickets.channels.boards import Card, ProjectBoard
from remediator.tickets.channels.github import GitHub, GithubTokenFile
from remediator_sim.github import MemoryGitHub
from remediator_sim.github.connection import connected
from remediator_sim.github.dispatch import Reply
from tests.oracle.emulator import node_modules
from tests.remediator.tickets.memory_channel import START
from tests.remediator.tickets.test_channel import Here, Way

pytestmark = pytest.mark.cluster
REPO, BOARD = "org/repo", ProjectBoard("org", 7, "Status", "Todo", "In Progress", "Blocked", "Done")
Exchange = dict[str, Any]  # `query`, `variables`, and `data` of the answer
# What is wrong with each exchange: a query that GitHub refuses, variables of another type, or an answer that it cannot
# give. The answer is taken for what GitHub's store holds, and the query is carried out on that.
JUDGE = """
import fs from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { buildSchema, execute, parse, validate } from "graphql";
const text = fs.readFileSync("node_modules/@octokit/graphql-schema/schema.graphql", "utf8");
const schema = buildSchema(text, { assumeValid: true });  // a field of it is defined twice
const first = (selections) => selections.find((selection) => selection.kind === "InlineFragment");
const typeResolver = (value, context, { fieldNodes: [field] }) =>
  first(field.selectionSet.selections).typeCondition.name.value;
const judged = ({ query, variables, data }) => {
  const document = parse(query);
  const wrong = validate(schema, document);
  if (wrong.length) return wrong.map((error) => error.message);
  const done = execute({ schema, document, rootValue: data, variableValues: variables, typeResolver });
  if (done.errors) return done.errors.map((error) => error.message);
  const given = JSON.parse(JSON.stringify(done.data));
  return isDeepStrictEqual(given, data) ? [] : [`${JSON.stringify(data)} is no answer to ${query}`];
};
console.log(JSON.stringify(JSON.parse(fs.readFileSync(0, "utf8")).map(judged)));
"""


class Recording(Way):
    """A line that keeps what goes over it to GraphQL."""

    def __init__(self, hub: MemoryGitHub) -> None:
        super().__init__(hub)
        self._serve, self.exchanges = hub.serve, list[Exchange]()
        self.carry = self._keep

    def _keep(self, method: str, url: str, headers: Mapping[str, str], raw: bytes) -> Reply:
        reply = self._serve(method, url, headers, raw)
        if url.endswith("/graphql"):
            self.exchanges.append({**json.loads(raw), "data": json.loads(reply.body)["data"]})
        return reply


def judged(exchanges: list[Exchange]) -> list[list[str]]:
    """What is wrong with each."""
    node, at = node_modules()
    run = subprocess.run(
        [node, "--input-type=module", "--eval", JUDGE],
        cwd=at, input=json.dumps(exchanges), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    problems: list[list[str]] = json.loads(run.stdout)
    return problems


async def exchanges(folder: Path) -> list[Exchange]:
    """An issue is put on a board, moved, and found there again; then field and board are not there any more."""
    hub = MemoryGitHub([REPO], ["ann"])
    project = hub.project("org", 7, "Status", "Todo")
    (folder / "token").write_text(hub.token)
    line = Recording(hub)
    with connected(line):
        channel = GitHub(hub.url, GithubTokenFile(folder / "token"), SYSTEM, spacing=0.0, worker=Here())
    issue = (await channel.create(REPO, Draft("t", "text", Marker("mark", START)))).ref
    card = await channel.card(BOARD, issue)
    await channel.move(BOARD, card, "Todo")
    assert await channel.card(BOARD, issue) == Card(card.id, "Todo")
    with pytest.raises(Refused, match="no value Blocked"):
        await channel.move(BOARD, card, "Blocked")
    for gone in (lambda: setattr(project, "field", "Phase"), hub._github.projects.clear):
        gone()
        with pytest.raises(Refused, match="no project org/7 with a field Status"):
            await channel.move(BOARD, card, "Done")
    await channel.aclose()
    return line.exchanges


async def test_what_is_asked_about_boards_and_what_the_fake_answers_is_of_githubs_own_schema(tmp_path: Path) -> None:
    seen = await exchanges(tmp_path)
    assert [next(iter(exchange["data"])) for exchange in seen] == [
        "organization",
        "addProjectV2ItemById",
        "updateProjectV2ItemFieldValue",
        "addProjectV2ItemById",
        *["organization"] * 2,
    ]
    assert judged(seen) == [[]] * len(seen)


async def test_the_schema_refuses_a_field_a_variable_and_an_answer_that_it_does_not_know(tmp_path: Path) -> None:
    first, added, *_ = await exchanges(tmp_path)
    misspelt = first | {"query": first["query"].replace("projectV2(", "projectV3(")}
    number = first | {"variables": first["variables"] | {"number": "seven"}}
    nameless = added | {"data": {"addProjectV2ItemById": {"item": {"fieldValueByName": None}}}}
    (unknown,), (mistyped,), (empty,) = judged([misspelt, number, nameless])
    assert 'Cannot query field "projectV3" on type "Organization"' in unknown
    assert "Int cannot represent non-integer value" in mistyped
    assert "Cannot return null for non-nullable field ProjectV2Item.id" in empty
