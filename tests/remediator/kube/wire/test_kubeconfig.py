"""Kubeconfigs: which context counts, and what is said of one that cannot be used."""

import base64
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
import yaml

from remediator.kube.wire import kubeconfig_plugin
from remediator.kube.wire.connection import Connection
from remediator.kube.wire.http import HttpTransport
from remediator.kube.wire.kubeconfig import current_context
from remediator.kube.wire.kubeconfig_connection import connection
from tests.harness.certificates import self_signed

SERVER = "https://127.0.0.1:9"


def written(path: Path, name: str = "it", user: Any = None, current: str | None = None, **cluster: Any) -> Path:
    """A kubeconfig of one context."""
    config = {
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": SERVER} | cluster}],
        "users": [{"name": name, "user": {"token": "x"} if user is None else user}],
        "current-context": name if current is None else current,
    }
    path.write_text(yaml.safe_dump(config))
    return path


async def refused(path: Path) -> str:
    with pytest.raises(ValueError) as caught:
        await HttpTransport.from_kubeconfig(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("[]", "Expected `object`, got `array`"),
        ("a: [", "line 1: expected the node content"),
        ("clusters: 5", "at `clusters`"),
        ("{}", "no current-context: set one with `kubectl config use-context NAME`"),
        ("current-context: other", "current-context 'other': no context has that name"),
    ],
)
async def test_what_is_no_kubeconfig_is_told(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    assert said in await refused(path)


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ({"server": 5}, "Expected `str`, got `int` - at `clusters[0].cluster.server`"),
        ({"server": ""}, "server of the cluster is '', not a URL such as https://HOST:PORT"),
        ({"server": "foo"}, "server of the cluster is 'foo', not a URL"),
        ({"server": "https://h:99999"}, "server of the cluster is 'https://h:99999', not a URL"),
        ({"server": "https://["}, "server of the cluster is 'https://[', not a URL"),
        ({"proxy-url": "foo"}, "proxy-url of the cluster is 'foo', not a URL"),
        ({"certificate-authority-data": "###"}, "at `clusters[0].cluster.certificate-authority-data`"),
        ({"certificate-authority-data": "aGVsbG8="}, "certificate-authority, client-certificate or client-key"),
    ],
)
async def test_a_wrong_field_of_the_cluster_is_named(tmp_path: Path, cluster: dict[str, Any], said: str) -> None:
    assert said in await refused(written(tmp_path / "config", **cluster))


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ({"server": "https://me:canary@h"}, "server of the cluster names a user: write who asks under users"),
        ({"server": "https://me:canary@h:99999"}, "server of the cluster is 'https://[secret]@h:99999', not a URL"),
        ({"proxy-url": "socks5://me:canary@h"}, "proxy-url of the cluster is 'socks5://[secret]@h', not a URL"),
        (
            {"proxy-url": "http://m%3Ae:canary@h"},
            "proxy-url of the cluster is 'http://[secret]@h': its user has a colon",
        ),
        ({"proxy-url": "http://me:canary%E2%82%AC@h"}, "'http://[secret]@h': its user or its password has a character"),
    ],
)
async def test_a_password_in_an_address_is_not_told(tmp_path: Path, cluster: dict[str, Any], said: str) -> None:
    told = await refused(written(tmp_path / "config", **cluster))
    assert said in told
    assert "canary" not in told


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("!canary", "could not determine a constructor for the tag (not shown)"),
        ("*canary", "found undefined alias (not shown)"),
        ("!!int canary", "(not shown) is no int"),
        ("!!int can'ary", "(not shown) is no int"),
        ("{canary: 1, canary: 2}", "the key (not shown) is given twice"),
        ("'canary", "found unexpected end of stream"),
    ],
)
async def test_what_is_no_yaml_is_told_by_its_line_and_not_by_its_words(tmp_path: Path, token: str, said: str) -> None:
    """They may be the token."""
    path = tmp_path / "config"
    path.write_text(f"users:\n- name: it\n  user:\n    token: {token}")
    with pytest.raises(ValueError) as caught:
        await HttpTransport.from_kubeconfig(path)
    assert str(caught.value) == f"line 4: {said}"
    shown = "".join(traceback.format_exception(caught.value))
    assert not [word for word in ("canary", "can'ary") if word in shown]


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ({"username": "a", "password": 5}, "at `users[0].user.password`"),
        ({"client-certificate-data": "aGVsbG8=", "client-key-data": "aGVsbG8="}, "client-certificate or client-key"),
        ({"token": "a\nb"}, "token of the user: has a line break"),
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/nowhere"}}, "exec of the user gave"),
    ],
)
async def test_a_wrong_field_of_the_user_is_named(tmp_path: Path, user: dict[str, Any], said: str) -> None:
    assert said in await refused(written(tmp_path / "config", user=user))


@pytest.mark.parametrize("who", [{"token": "x"}, {"exec": {"command": "/nowhere"}}], ids=["token", "plugin"])
@pytest.mark.parametrize(
    ("field", "given"), [("as", "a"), ("as-uid", "1"), ("as-groups", ["a"]), ("as-user-extra", {"a": ["b"]})]
)
async def test_a_user_who_impersonates_another_is_refused_and_not_asked_for_as_itself(
    tmp_path: Path, who: dict[str, Any], field: str, given: Any
) -> None:
    """kubectl asks as the other, who may have fewer rights."""
    told = await refused(written(tmp_path / "config", user=who | {field: given}))
    assert f"current-context 'it': `{field}` of its user 'it': Remediator impersonates nobody" in told
    assert "remove the field and give the user the rights" in told


async def test_empty_fields_of_impersonation_and_those_of_another_user_refuse_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "config", user={"token": "x", "as": "", "as-groups": [], "as-user-extra": None})
    config = yaml.safe_load(path.read_text())
    config["users"].append({"name": "other", "user": {"token": "y", "as": "a"}})
    path.write_text(yaml.safe_dump(config))
    assert (await connection(str(path))).authorization() == "Bearer x"


async def test_an_empty_token_beside_a_file_of_one_counts_for_none_as_with_kubectl(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of a file\n")
    path = written(tmp_path / "config", user={"token": "", "tokenFile": "token"})
    assert (await connection(str(path))).authorization() == "Bearer of a file"


@pytest.mark.parametrize("field", ["username", "password"])
async def test_a_password_that_utf_8_cannot_write_is_told_by_its_field_and_not_by_its_words(
    tmp_path: Path, field: str
) -> None:
    path = written(tmp_path / "config", user={"username": "a", "password": "b"} | {field: "\ud800canary"})
    with pytest.raises(ValueError) as caught:
        await connection(str(path))
    assert str(caught.value) == f"{field} of the user: has half of a surrogate pair, which UTF-8 cannot write"
    assert "canary" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("what", "said"),
    [("clusters", "there is no cluster 'it'"), ("users", "its user is 'it', which is not there")],
)
async def test_a_context_without_its_cluster_or_user_says_which(tmp_path: Path, what: str, said: str) -> None:
    path = written(tmp_path / "config")
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {what: None}))
    assert f"current-context 'it': {said}" in await refused(path)


async def test_a_token_in_a_file_of_its_own_may_end_with_a_line_break_and_is_renewed(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    transport = await HttpTransport.from_kubeconfig(written(tmp_path / "config", user={"tokenFile": "token"}))
    assert transport.connection.authorization() == "Bearer secret"
    (tmp_path / "token").write_text("another\n")
    assert transport.connection.authorization() == "Bearer another"
    await transport.close()


async def test_of_several_files_the_first_that_names_a_context_decides_as_with_kubectl(tmp_path: Path) -> None:
    none = written(tmp_path / "none", "none", current="")
    first = written(tmp_path / "first", "first", server="https://127.0.0.1:1")
    last = written(tmp_path / "last", "last", server="https://127.0.0.1:2")
    joined = f"{tmp_path / 'nowhere'}:{none}:{first}:{last}"
    assert current_context(joined).name == "first"
    transport = await HttpTransport.from_kubeconfig(joined)
    assert transport.connection.server == "https://127.0.0.1:1"
    await transport.close()


def test_of_several_files_the_wrong_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("clusters: 5")
    with pytest.raises(ValueError, match=f"^{tmp_path / 'wrong'}: Expected "):
        current_context(f"{written(tmp_path / 'config')}:{tmp_path / 'wrong'}")


def test_several_files_of_which_none_is_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no kubeconfig at /nowhere/a:/nowhere/b"):
        current_context("/nowhere/a:/nowhere/b")


def encoded(path: Path) -> str:
    """A file as data of a kubeconfig."""
    return base64.b64encode(path.read_bytes()).decode()


def shown(of: Connection) -> tuple[object, ...]:
    """What a server sees of a connection."""
    assert of.tls is not None
    trusted = of.tls.get_ca_certs() if of.server.startswith("https") else ()
    return (
        of.server,
        of.authorization(),
        of.tls_server_name,
        of.proxy,
        of.tls.verify_mode,
        of.tls.check_hostname,
        trusted,
    )


@pytest.mark.parametrize(
    ("user", "cluster"),
    [
        ({"token": "x"}, {"server": f"{SERVER}/"}),
        ({"token": "x", "tokenFile": "token", "username": "a", "password": "b"}, {"tls-server-name": "api"}),
        ({"tokenFile": "token", "username": "a", "password": "b"}, {"insecure-skip-tls-verify": True}),
        ({"username": "a", "password": "bä"}, {"proxy-url": "http://proxy:3128"}),
        ({"username": "a"}, {"certificate-authority": "ca.crt"}),
        ({"client-certificate": "ca.crt", "client-key": "key.pem"}, {"certificate-authority-data": "CERT"}),
        ({"client-certificate-data": "CERT", "client-key-data": "KEY"}, {}),
        ({"client-certificate": "ca.crt", "client-key-data": "KEY", "token": "x"}, {"server": "http://h"}),
        ({}, {"certificate-authority": "none", "server": "http://h"}),
    ],
)
async def test_a_user_who_asks_no_plugin_is_shown_as_the_library_shows_them(
    tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any]
) -> None:
    _, certificate = self_signed(tmp_path)
    (tmp_path / "token").write_text("of a file")
    data = {"CERT": encoded(certificate), "KEY": encoded(tmp_path / "key.pem")}
    user, cluster = ({name: data.get(value, value) for name, value in part.items()} for part in (user, cluster))
    path = str(written(tmp_path / "config", user=user, **cluster))
    assert shown(await connection(path)) == shown(await kubeconfig_plugin.connection(path, "it"))


async def test_a_file_that_is_not_there_is_named_with_its_field(tmp_path: Path) -> None:
    said = await refused(written(tmp_path / "config", **{"certificate-authority": "none.crt"}))
    assert said == f"certificate-authority: there is no file {tmp_path / 'none.crt'}"


def test_who_asks_no_plugin_waits_for_no_library(tmp_path: Path) -> None:
    """It takes a third of a second."""
    program = "import asyncio, sys; from remediator.kube.wire import kubeconfig_connection as read; "
    program += "asyncio.run(read.connection(sys.argv[1])); sys.exit('kubernetes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program, written(tmp_path / "config")], check=False).returncode == 0
