"""A GitHub App in place of a token: its tokens are asked for, renewed and given up; its key is a file."""

import os

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from remediator.clock import SYSTEM
from remediator.tickets.channels.base import Draft, Later, Marker, Refused
from remediator.tickets.channels.github import AppKeyFile, GitHub
from remediator_sim.github import FakeGitHub, GithubFault
from tests.remediator.tickets.memory_channel import START

pytestmark = pytest.mark.sampled("github app")

REPO, TOKENS = "org/repo", "/app/installations/100/access_tokens$"
DRAFT = Draft("gpu-17: GPU lost", "text", Marker("mark4711", START))


@pytest.fixture
async def fake():
    async with FakeGitHub([REPO]) as fake:
        yield fake
        assert fake.violations == []


@pytest.fixture
def key(fake, tmp_path):
    (tmp_path / "key").write_text(fake.app[2])
    return tmp_path / "key"


@pytest.fixture
async def hub(fake, key):
    hub = channel(fake, key)
    yield hub
    await hub.aclose()


def channel(fake, key, installation=100):
    return GitHub(fake.url, AppKeyFile("1", installation, key), SYSTEM, spacing=0.0, timeout=15)


def asked(fake):
    return [(one.path.split("/")[1], one.status) for one in fake.requests]


async def refusal(awaitable):
    with pytest.raises((Refused, Later)) as caught:
        await awaitable
    return caught.value


async def test_an_app_gets_one_token_and_writes_with_it(fake, hub):
    for _ in range(2):
        await hub.create(REPO, DRAFT)

    assert asked(fake) == [("app", 201), ("repos", 201), ("repos", 201)]


async def test_a_token_that_github_refuses_is_given_up_for_another(fake, hub):
    await hub.create(REPO, DRAFT)
    fake.fail("POST", "/issues$", GithubFault(401, "Bad credentials"))

    await hub.create(REPO, DRAFT)

    assert asked(fake)[2:] == [("repos", 401), ("app", 201), ("repos", 201)]
    assert len(fake.issues(REPO)) == 2


async def test_an_app_that_may_write_nothing_asks_for_one_more_token_and_no_more(fake, hub):
    fake.fail("POST", "/issues$", GithubFault(401, "Bad credentials"), times=9)

    assert (await refusal(hub.create(REPO, DRAFT))).field == "token"

    assert asked(fake) == [("app", 201), ("repos", 401), ("app", 201), ("repos", 401)]


@pytest.mark.parametrize(
    "fault", [GithubFault(502), GithubFault(drop=True), GithubFault(201, text="<html>Please log in</html>")]
)
async def test_while_no_token_is_to_be_had_nothing_is_sent_and_a_creation_is_later(fake, hub, fault):
    fake.fail("POST", TOKENS, fault)

    error = await refusal(hub.create(REPO, DRAFT))

    assert isinstance(error, Later)
    assert error.message.startswith("could not get a token of the App to create an issue in org/repo: ")
    assert (await hub.create(REPO, DRAFT)).number == 1


async def test_a_wrong_installation_is_refused_by_the_options_that_name_it(fake, key):
    hub = channel(fake, key, installation=7)

    error = await refusal(hub.create(REPO, DRAFT))

    assert (type(error), error.field) == (Refused, "token")
    assert "GitHub answered 404" in error.message
    assert "Correct --github-app-id, --github-app-installation-id or the key file" in error.message
    await hub.aclose()


def another():
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    kind, plain = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, kind, plain).decode()


async def test_a_key_is_read_again_when_its_file_changes(fake, key, hub):
    key.write_text(another())
    error = await refusal(hub.create(REPO, DRAFT))
    assert (error.field, "GitHub answered 401" in error.message) == ("token", True)

    key.write_text(fake.app[2])
    os.utime(key, (1, 1))

    assert (await hub.create(REPO, DRAFT)).number == 1


BEGIN, END = "-----BEGIN RSA PRIVATE KEY-----\n", "\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize("content", [None, "", "ghp_canary", f"{BEGIN}canary{END}", f"{BEGIN}Y2FuYXJ5{END}"])
async def test_a_file_that_holds_no_key_is_refused_without_a_request_or_a_word_of_it(fake, tmp_path, content):
    if content is not None:
        (tmp_path / "none").write_text(content)
    hub = channel(fake, tmp_path / "none")

    error = await refusal(hub.create(REPO, DRAFT))

    assert (type(error), error.field, fake.requests) == (Refused, "token", [])
    assert str(tmp_path / "none") in error.message
    assert not [word for word in ("canary", "Y2FuYXJ5") if word in error.message]
    await hub.aclose()
