"""The page over HTTP: who comes in, what they get, and that nothing from outside is more than text."""

import asyncio
import contextlib
import json
import re
from dataclasses import replace

import jsonschema
import pytest

from remediator.kube.runtime import reflector
from remediator.kube.wire.client import Client
from remediator.kube.wire.errors import Unavailable
from remediator.web.endpoints import PAGE
from remediator.web.page import html, stream
from remediator.web.page import source as source_of_page
from remediator.web.page.entry import COOKIE
from remediator.web.page.html import Pages
from remediator.web.page.openapi import PATHS, SCHEMAS, document
from remediator.web.page.readers import Entry
from tests.harness.controller import ELSEWHERE, ControllerHarness, controller_harness, running, until
from tests.harness.kinds import NODES
from tests.harness.page import ServedPage, page_served

HOSTILE = "<script>alert(1)</script>\x1b[2J\"'&"


async def one_case(harness: ControllerHarness) -> str:
    """gpu-1 is sick and has a case, gpu-2 is well. Gives the name of the case."""
    await harness.budget("all", 1)
    await harness.policy()
    await harness.change(NODES, ELSEWHERE, metadata={"labels": {"topology.kubernetes.io/rack": "r1"}})
    await harness.node("gpu-2")
    await harness.node("gpu-1", "True")
    await until(lambda: harness.cases("gpu-1"))
    name: str = harness.cases("gpu-1")[0]["metadata"]["name"]
    return name


@pytest.mark.parametrize(("token", "status"), [("", 401), ("bad", 401), ("poor", 403), ("late", 503)])
@pytest.mark.parametrize(
    "path", ["/", "/nodes/gpu-1", "/events", "/cases/none/events", "/nothing", "/api/v1/fleet", "/api/v1/nothing"]
)
async def test_whoever_may_not_get_cases_gets_nothing_but_the_form(path: str, token: str, status: int) -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        await harness.node("gpu-1")
        code, headers, text = await page.answer(path, token)
    assert code == status
    assert "gpu-1" not in re.sub(r'name="to" value="[^"]*"', "", text)
    assert ("WWW-Authenticate" in headers) is (status == 401)
    assert headers["Content-Type"].startswith("application/json" if path.startswith("/api/") else "text/html")


async def test_the_form_sets_a_cookie_that_no_script_reads_and_no_other_site_sends_and_leads_on() -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        form = {"token": "good", "to": "/nodes/gpu-1"}
        async with page.session.post(f"{page.url}/sign-in", data=form, allow_redirects=False) as answer:
            kept, where = answer.headers["Set-Cookie"], answer.headers["Location"]
            assert (answer.status, where) == (303, "/nodes/gpu-1")
        for part in ("HttpOnly", "Secure", "SameSite=Strict", "Path=/"):
            assert part in kept
        assert kept.startswith(f"{COOKIE}=good;")
        assert (await page.get("/", token="", Cookie=f"{COOKIE}=good"))[0] == 200
        assert (await page.get("/", token="bad", Cookie=f"{COOKIE}=good"))[0] == 401  # a header counts first
        async with page.session.post(f"{page.url}/sign-out", allow_redirects=False) as answer:
            assert f'{COOKIE}=""' in answer.headers["Set-Cookie"]


@pytest.mark.parametrize("to", ["//evil.example", "https://evil.example/", "/\\evil.example", "/a\r\nX: y"])
async def test_the_form_leads_to_no_other_site(to: str) -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        form = {"token": "good", "to": to}
        async with page.session.post(f"{page.url}/sign-in", data=form, allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "/")


@pytest.mark.parametrize("path", ["sign-in", "sign-out"])
async def test_another_site_signs_nobody_in_or_out(path: str) -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        headers = {"Sec-Fetch-Site": "cross-site"}
        asked = page.session.post(f"{page.url}/{path}", data={"token": "good"}, headers=headers, allow_redirects=False)
        async with asked as answer:
            assert (answer.status, "Set-Cookie" in answer.headers) == (403, False)


async def test_a_link_of_another_site_leads_to_the_page_once_the_browser_sends_its_cookie() -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        code, text = await page.get("/", token="", Sec_Fetch_Site="cross-site")
        assert (code, 'http-equiv="refresh" content="0"' in text) == (200, True)
        assert (await page.get("/", token="", Sec_Fetch_Site="same-origin"))[0] == 401


STRANGERS = [
    ("GET /nodes/gpu-1", "", 401),
    ("GET /api/v1/fleet", "", 401),
    ("GET /", "Authorization: Bearer poor\r\n", 403),
    ("GET /", "Sec-Fetch-Site: cross-site\r\n", 200),
    ("GET /static/page.css", "", 200),
    ("POST /sign-out", "Content-Length: 0\r\n", 303),
]


@pytest.mark.parametrize(("asked", "header", "status"), STRANGERS)
async def test_a_stranger_gets_one_answer_on_a_connection_however_many_it_asks_for(
    asked: str, header: str, status: int
) -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(page.url.rpartition(":")[2]))
        writer.write(f"{asked} HTTP/1.1\r\nHost: a\r\n{header}\r\n".encode() * 8)
        said = b""
        with contextlib.suppress(ConnectionResetError):
            while part := await asyncio.wait_for(reader.read(2**16), 60):
                said += part
        writer.close()
    assert said.count(b"HTTP/1.1 ") == 1
    assert said.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"Connection: close" in said


async def test_a_reader_keeps_the_connection_also_for_the_look_of_the_page() -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        for path in ("/", "/static/page.css"):
            assert "Connection" not in (await page.answer(path))[1]


def test_the_form_is_made_once_wherever_it_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    pages, odd = Pages(signs=True), "/nodes/a?b=c&d='\"<"
    assert b'value="/x"' in pages.sign_in("", "/x")
    monkeypatch.setattr(html, "environment", None)
    assert b'value="/nodes/a?b=c&amp;d=&#39;&#34;&lt;"' in pages.sign_in("", odd)


async def test_too_large_a_form_is_refused() -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        asked = page.session.post(f"{page.url}/sign-in", data={"token": "x" * 20_000}, allow_redirects=False)
        async with asked as answer:
            assert answer.status == 400


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_nothing_but_reading_is_possible(method: str) -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        for path in ("/", f"/nodes/{ELSEWHERE}", "/api/v1/fleet"):
            assert (await page.get(path, method=method))[0] == 405


async def test_every_answer_forbids_scripts_of_others_frames_and_guessing() -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        for path, token in (("/", "good"), ("/", ""), ("/nothing", "good"), ("/api/v1/fleet", "good")):
            _, headers, _ = await page.answer(path, token)
            policy = headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Referrer-Policy"] == "same-origin"


async def test_head_gives_what_get_does_without_a_body_and_unknown_paths_are_not_found() -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        for path in ("/", "/now", f"/nodes/{ELSEWHERE}", "/static/page.css", "/api/v1/fleet", "/api", "/search?q=x"):
            assert await page.get(path, method="HEAD") == (200, "")
        for path in ("/nothing", "/nodes/gpu-9", "/cases/none", "/static/none", "/static/..%2fhtml.py", "/api/v1/none"):
            assert (await page.get(path))[0] == 404
        assert json.loads((await page.get("/api/v1/nodes/gpu-9"))[1]) == {
            "error": "nothing here has this name, or it is not kept any more"
        }


async def test_the_page_shows_racks_the_queue_budgets_and_leads_to_node_and_case() -> None:
    async with controller_harness() as harness, running(harness):
        case = await one_case(harness)
        async with page_served(harness) as page:
            code, text = await page.get("/")
            node, about = await page.get("/nodes/gpu-1"), await page.get(f"/cases/{case}")
    assert code == 200
    assert '<span class="small" data-rack="r1">1 in service</span>' in text
    assert 'aria-label="gpu-2, in service">S</a>' in text
    assert f'<a href="/cases/{case}">GpuLost</a>' in text
    assert '<span id="budget-1">all: ' in text
    assert node[0] == about[0] == 200
    assert f"/cases/{case}" in node[1]
    assert "policy gpu-lost, GpuLost=True (Said)" in about[1]


async def test_what_a_node_says_is_text_and_nothing_else() -> None:
    async with controller_harness() as harness, running(harness):
        await one_case(harness)
        odd = {"type": "Odd", "status": "True", "reason": "Odd", "message": HOSTILE}
        await harness._node_status("gpu-1", {"conditions": [odd]})
        labels = {"topology.kubernetes.io/rack": "r-1"}
        await harness.change(NODES, "gpu-1", metadata={"labels": labels})
        async with page_served(harness, gang_topology="topology.kubernetes.io/rack") as page:
            _, text = await page.get("/nodes/gpu-1")
            _, found = await page.get("/search?q=%3Cscript%3Ealert(1)%3C/script%3E")
    assert "&lt;script&gt;alert(1)&lt;/script&gt; [2J&#34;&#39;&amp;" in text
    for shown in (text, found):
        assert "<script>alert" not in shown
        assert "\x1b" not in shown


@pytest.mark.parametrize("docs", ["https://git.example.org/docs", ""])
async def test_a_node_and_a_case_lead_to_the_runbook_where_a_setting_says_where_docs_are(docs: str) -> None:
    async with controller_harness() as harness, running(harness):
        case = await one_case(harness)
        async with page_served(harness, docs_url=docs) as page:
            texts = [(await page.get(path))[1] for path in (f"/cases/{case}", "/nodes/gpu-1")]
    for text in texts:
        assert f"<code>{docs or 'docs'}/conditions/GpuLost.md</code>" in text
        assert ('href="https://git.example.org/docs/conditions/GpuLost.md"' in text) is bool(docs)


@pytest.mark.slow
async def test_a_case_that_is_over_shows_its_timeline_and_evidence_and_says_when_they_cannot_be_read() -> None:
    async with controller_harness() as harness, running(harness), page_served(harness) as page:
        await harness.policy()
        await harness.node("gpu-1", "True")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        case = harness.cases("gpu-1")[0]
        name, evidence = case["metadata"]["name"], case["status"]["evidence"]
        source = page.page._source
        await until(lambda: source._cache.cases.get(name).ended and not source._cache.cases.get(name).timeline)
        text = (await page.get(f"/cases/{name}"))[1]
        assert all(f"<b>{word}</b>" in text for word in ("Claimed", "OperationStarted", "Verified"))
        assert "No evidence is kept" not in text
        said = json.loads((await page.get(f"/api/v1/cases/{name}"))[1])
        assert said["timeline"][-1]["reason"] == "Verified"
        assert said["evidence"].keys() == evidence.keys()
        source._client = Client(Away())
        assert "does not say now what has happened" in (await page.get(f"/cases/{name}"))[1]


async def test_search_finds_nodes_and_cases_and_leads_to_the_only_one() -> None:
    async with controller_harness() as harness, running(harness):
        case = await one_case(harness)
        async with page_served(harness) as page:
            _, text = await page.get("/search?q=GPU")
            status, headers, _ = await page.answer("/search?q=gpu-2")
            data = json.loads((await page.get("/api/v1/search?q=gpu-1"))[1])
    assert 'href="/nodes/gpu-1"' in text
    assert (status, headers["Location"]) == (303, "/nodes/gpu-2")
    assert data.pop("freshness")["live"] is True
    assert data == {"nodes": ["gpu-1"], "cases": [case], "cut": False}


async def test_each_view_is_as_its_document_says() -> None:
    async with controller_harness() as harness, running(harness):
        case = await one_case(harness)
        await until(lambda: harness.phase("gpu-1"))
        async with page_served(harness) as page:
            schema = json.loads((await page.get("/api/v1/openapi.json"))[1])
            for path, (_, of) in PATHS.items():
                name = case if "cases" in path else "gpu-1"
                code, text = await page.get(path.format(name=name) + ("?q=gpu" if path.endswith("search") else ""))
                where = {"$ref": f"#/components/schemas/{of}", "components": schema["components"]}
                jsonschema.validate(json.loads(text), where, jsonschema.Draft202012Validator)
                assert code == 200
    assert schema == document()


async def test_the_page_of_the_json_has_every_address_every_schema_and_every_field() -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        assert (await page.get("/api", token=""))[0] == 401
        code, text = await page.get("/api")
    assert code == 200
    for path, (summary, of) in PATHS.items():
        assert f"<code>{path.replace('{name}', 'NAME')}" in text
        assert f'<a href="#{of}">{of}</a>' in text
        assert re.sub("`([^`]+)`", r"<code>\1</code>", summary) in text
    for name, schema in SCHEMAS.items():
        part = text.partition(f'<h2 id="{name}">')[2].partition("</dl>")[0]
        of = (
            SCHEMAS["Case"]["properties"] | schema["allOf"][1]["properties"]
            if "allOf" in schema
            else schema["properties"]
        )
        assert re.findall("<dt><code>([^<]+)</code>", part) == list(of)
    assert "<dt><code>waitsFor</code></dt>" not in text  # it stands in its list
    assert (
        "<dd>list of {actor: string, waitsFor: string, remedy: string, since: time or null, cases: list of Case}</dd>"
        in text
    )


async def events_until(page: ServedPage, word: str, path: str = "/events?of=none") -> list[str]:
    """The names of the events until one has this word in its data."""
    seen = []
    async with asyncio.timeout(60):
        async with page.session.get(page.url + path, headers={"Authorization": "Bearer good"}) as answer:
            assert answer.headers["Content-Type"].startswith("text/event-stream")
            async for line in answer.content:
                if line.startswith(b"event: "):
                    seen.append(line[7:].decode().strip())
                if line.startswith(b"data: ") and word in line.decode():
                    return seen
    raise AssertionError(seen)


async def test_a_change_comes_by_itself_and_only_what_has_changed() -> None:
    async with controller_harness() as harness:
        await harness.node("gpu-1")
        async with page_served(harness) as page:
            tag = re.search('data-of="([^"]+)"', (await page.get("/"))[1])
            assert tag is not None
            coming = asyncio.create_task(events_until(page, '"gpu-1":"C"', f"/events?of={tag[1]}"))
            await harness.change(NODES, "gpu-1", spec={"unschedulable": True})
            assert await coming == ["changed"]
            assert await events_until(page, "") == ["other"]  # who shows something that is not known is told to load


async def test_a_stream_ends_before_its_next_event_once_the_right_is_taken_away() -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        await harness.node("gpu-1")
        headers = {"Authorization": "Bearer good"}
        async with page.session.get(f"{page.url}/events?of=none", headers=headers) as answer, asyncio.timeout(60):
            while b"data: " not in await answer.content.readline():
                pass
            page.tokens["good"] = Entry.FORBIDDEN
            await harness.change(NODES, "gpu-1", spec={"unschedulable": True})
            assert b"gpu-1" not in await answer.content.read()


async def test_many_readers_cost_one_rendering() -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        made = []
        make = page.page._pages.fleet
        page.page._pages.fleet = lambda *given: made.append(given) or make(*given)
        answers = await asyncio.gather(*(page.get("/") for _ in range(40)))
    assert [code for code, _ in answers] == [200] * 40
    assert len(made) == 1


async def test_who_has_the_page_already_is_sent_nothing() -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        _, headers, _ = await page.answer("/")
        assert (await page.get("/", If_None_Match=headers["ETag"]))[0] == 304


async def test_without_tls_everybody_on_this_machine_reads_but_no_page_of_another_name() -> None:
    async with controller_harness() as harness, page_served(harness, signs=False) as page:
        assert (await page.get("/", token=""))[0] == 200
        assert (await page.get("/", token="", Host="localhost"))[0] == 200
        assert (await page.get("/", token="", Host="evil.example"))[0] == 421


class Away:
    """The way to an API server that is not there."""

    async def request(self, *_: object, **__: object) -> None:
        """Nobody answers."""
        raise Unavailable(0, "Unreachable", "no answer")


class Hanging:
    """The way to one that takes the request and says nothing."""

    async def request(self, *_: object, **__: object) -> None:
        """For ever."""
        await asyncio.Event().wait()


VIEWS = ("fleet", "nodes", "nodes/gpu-1", "nodes/gpu-1/history", "search?q=gpu")
UNREACHED = r"Not live: what you see is of \d\d:\d\d:\d\d UTC, \d+ s ago: the API server cannot be reached\."


async def freshness_of(page: ServedPage) -> list[dict[str, object]]:
    """What each view says as JSON."""
    return [json.loads((await page.get(f"/api/v1/{view}"))[1])["freshness"] for view in VIEWS]


@pytest.mark.slow
async def test_while_the_api_server_is_away_every_view_and_the_stream_say_of_when_they_are() -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        await harness.node("gpu-1")
        assert [each["live"] for each in await freshness_of(page)] == [True] * 5
        coming = asyncio.create_task(events_until(page, "cannot be reached"))
        source = page.page._source
        source._client = Client(Away())
        page.page._snapshots.moved()
        assert await coming
        for said in await freshness_of(page):
            assert (said["live"], bool(re.fullmatch(UNREACHED, str(said["sentence"])))) == (False, True), said
        for path in ("/", "/nodes/gpu-1", "/search?q=none"):
            assert re.search(f'class="warn"[^>]*>{UNREACHED}</p>', (await page.get(path))[1]), path
        source._client = harness.client
        page.page._snapshots.moved()
        assert await events_until(page, '"stale":""')
        assert [each["live"] for each in await freshness_of(page)] == [True] * 5


async def test_what_a_silent_watch_shows_is_said_to_be_old(monkeypatch: pytest.MonkeyPatch) -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        await harness.node("gpu-1")
        monkeypatch.setattr(reflector, "STALE_SECONDS", -1.0)
        (said, *_) = await freshness_of(page)
    assert said["live"] is False
    assert re.search("ago: the API server says nothing of .*Node, ", str(said["sentence"]))


async def test_the_page_does_not_wait_for_an_api_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_of_page, "ANSWER_SECONDS", 0.05)
    async with controller_harness() as harness, page_served(harness) as page, asyncio.timeout(60):
        page.page._source._client = Client(Hanging())
        assert re.search(UNREACHED, (await page.get("/"))[1])


async def test_a_reader_hears_that_the_stream_is_alive_while_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "ALIVE_SECONDS", 0.05)
    async with controller_harness() as harness, page_served(harness) as page:
        assert (await events_until(page, 'data: {"asOf":"2'))[-1] == "alive"


async def test_who_follows_is_let_go_after_no_time_that_only_strangers_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signs of life every 0.05 s, and a stranger has 0.1 s, twice: after 20 of them a reader still follows."""
    monkeypatch.setattr(stream, "ALIVE_SECONDS", 0.05)
    limits = replace(PAGE, first_seconds=0.1)
    async with controller_harness() as harness, page_served(harness, limits=limits) as page, asyncio.timeout(60):
        headers = {"Authorization": "Bearer good"}
        async with page.session.get(f"{page.url}/events?of=none", headers=headers) as answer:
            alive = 0
            while alive < 20:
                line = await answer.content.readline()
                assert line, f"the connection has ended after {alive} signs of life"
                alive += line == b"event: alive\n"


async def test_connections_that_a_reader_keeps_open_and_does_not_use_shut_no_other_reader_out() -> None:
    """There is room for 6 connections; one reader keeps 6 after an answer on each."""
    limits = replace(PAGE, connections=6, strangers=6)
    asked = b"GET /now HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer good\r\n\r\n"
    async with controller_harness() as harness, page_served(harness, limits=limits) as page, asyncio.timeout(60):
        kept = []
        for _ in range(6):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(page.url.rpartition(":")[2]))
            writer.write(asked)
            assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
            kept.append(writer)
        async with page.session.get(f"{page.url}/now", headers={"Authorization": "Bearer good"}) as other:
            assert other.status == 200
        for writer in kept:
            writer.close()


async def test_who_follows_is_let_go_when_the_replica_ends() -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        headers = {"Authorization": "Bearer good"}
        async with page.session.get(f"{page.url}/events?of=none", headers=headers) as answer:
            await answer.content.readline()
            await page.page._streams.stop()
            assert b"event: other" in await answer.content.read()
        assert (await page.get("/events"))[0] == 503
