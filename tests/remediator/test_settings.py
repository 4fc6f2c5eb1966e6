"""What an operator may set."""

from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from remediator.core.breaker import Breaker
from remediator.settings import Settings, address


@pytest.mark.parametrize(
    ("listen", "found"),
    [
        ("127.0.0.1:8080", ("127.0.0.1", 8080)),
        ("localhost:0", ("localhost", 0)),
        (":65535", ("", 65535)),
        ("[::1]:80", ("::1", 80)),
        ("::1:80", None),
        (":65536", None),
        ("h:80/x", None),
        ("a@h:80", None),
        ("80", None),
        ("", None),
    ],
)
def test_an_address_is_a_host_and_a_port(listen: str, found: tuple[str, int] | None) -> None:
    assert address(listen) == found


@pytest.mark.parametrize("field", ["namespace", "operations_namespace"])
@pytest.mark.parametrize("name", ["", "GPU", "a/b", "-a", "a-", "a.b", "a" * 64])
def test_what_cannot_be_a_namespace_is_refused_with_the_option(field: str, name: str) -> None:
    option = f"--{field.replace('_', '-')}"
    with pytest.raises(ValueError, match=f"^{option} is .*, not the name of a namespace, such as remediator-system$"):
        Settings(**{field: name})


def test_both_namespaces_are_handed_on_together() -> None:
    namespaces = Settings(namespace="gpu-ops", operations_namespace="a" * 63).namespaces
    assert (namespaces.system, namespaces.operations) == ("gpu-ops", "a" * 63)


def test_a_container_that_starts_again_in_its_pod_is_another_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAME", "remediator-7d4f-x2x")
    first, second = Settings().identity, Settings().identity
    assert first != second
    assert {name.rpartition("-")[0] for name in (first, second)} == {"remediator-7d4f-x2x"}


def test_all_settings_are_shown_at_the_start_and_of_a_secret_only_where_it_lies(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("hunter2")
    shown = Settings(identity="one", github_token_file=token, drains=7).shown()
    unset = {field.name for field in fields(Settings) if field.default is None} - {"github_token_file"}
    nested = {"breaker_starts", "breaker_window_seconds", "quiet_hours", "quiet_share"}
    assert set(shown) == {field.name for field in fields(Settings)} - {"breaker", "quiet"} - unset | nested
    assert (shown["drains"], shown["github_token_file"]) == ("7", str(token))
    assert "hunter2" not in str(shown)


def test_settings_are_shown_flat_and_what_is_not_set_is_left_out() -> None:
    shown = Settings(breaker=Breaker(7, timedelta(minutes=5))).shown()
    assert (shown["breaker_starts"], shown["breaker_window_seconds"]) == ("7", "300.0")
    assert "None" not in shown.values()


TLS = {"tls_cert_file": Path("c"), "tls_key_file": Path("k")}
TICKETS = {"routes": Path("r"), "github_token_file": Path("t")}
HERE = "127.0.0.1:0"


@pytest.mark.parametrize(
    ("wrong", "refusal"),
    [
        ({"listen_extender": "8443"}, "--listen-extender is '8443', not host:port"),
        ({"listen_webhook": "h:80/x"}, "--listen-webhook is 'h:80/x', not host:port"),
        ({"tls_cert_file": Path("c")}, "--tls-cert-file and --tls-key-file belong together"),
        ({"tls_key_file": Path("k")}, "--tls-cert-file and --tls-key-file belong together"),
        ({**TLS, "no_tls": True}, "--no-tls is given beside --tls-cert-file"),
        ({"client_ca_file": Path("a"), "no_tls": True}, "--client-ca-file needs TLS"),
        ({"listen_extender": "0.0.0.0:1", "no_tls": True}, "--no-tls is for loopback only"),
        ({"listen_extender": ":1", "no_tls": True}, "--no-tls is for loopback only"),
        ({**TLS, "listen_extender": HERE}, "--listen-extender needs --client-ca-file or --extender-token-file"),
        ({**TLS, **TICKETS, "listen_webhook": HERE}, "--listen-webhook needs --client-ca-file or --webhook-token-file"),
        ({**TICKETS, "listen_webhook": HERE, "no_tls": True}, "--listen-webhook needs --client-ca-file or"),
        ({"listen_webhook": HERE}, "--routes is needed for --listen-webhook"),
        ({"chat": Path("c")}, "--routes is needed for --chat: rooms hear of tickets"),
        ({**TICKETS, "webhook_token_file": Path("w")}, "--listen-webhook is needed for --webhook-token-file"),
        ({**TICKETS, "listen_github": "0.0.0.0:8445"}, "--listen-github and --github-webhook-secret-file belong"),
        ({**TICKETS, "github_webhook_secret_file": Path("s")}, "--listen-github and --github-webhook-secret-file"),
        ({"listen_github": HERE}, "--routes is needed for --listen-github"),
    ],
)
def test_endpoints_that_nobody_could_use_or_anybody_are_refused(wrong: dict[str, Any], refusal: str) -> None:
    with pytest.raises(ValueError, match=f"^{refusal}"):
        Settings(**wrong)


@pytest.mark.parametrize(
    "fine",
    [
        {},
        {"listen_extender": "0.0.0.0:8443"},
        {**TICKETS, "listen_webhook": "0.0.0.0:8444"},
        {"listen_extender": "[::1]:0", "no_tls": True},
        {**TLS, "listen_extender": HERE, "extender_token_file": Path("t")},
        {**TLS, "listen_extender": HERE, "client_ca_file": Path("a")},
        {**TICKETS, "listen_webhook": HERE, "no_tls": True, "webhook_token_file": Path("w")},
        {**TICKETS, "listen_github": "0.0.0.0:8445", "github_webhook_secret_file": Path("s")},
    ],
)
def test_endpoints_that_their_callers_can_open_are_taken(fine: dict[str, Any]) -> None:
    assert Settings(**fine).shown()


PROMETHEUS = "https://prometheus.monitoring.svc:9090/a/b"


@pytest.mark.parametrize(
    "fine",
    [
        {"prometheus_url": "http://prometheus.monitoring.svc:9090"},
        {"prometheus_url": PROMETHEUS, "prometheus_token_file": Path("t"), "prometheus_ca_file": Path("c")},
        {"prometheus_url": "http://127.0.0.1:9090/", "prometheus_token_file": Path("t")},
        {"prometheus_url": "http://[::1]:9090", "prometheus_token_file": Path("t")},
    ],
)
def test_a_prometheus_that_can_be_asked_is_taken(fine: dict[str, Any]) -> None:
    assert Settings(**fine).shown()["prometheus_url"] == fine["prometheus_url"]


@pytest.mark.parametrize(
    ("wrong", "refusal"),
    [
        ({"prometheus_token_file": Path("t")}, "--prometheus-url is needed for --prometheus-token-file"),
        ({"prometheus_ca_file": Path("c")}, "--prometheus-url is needed for --prometheus-token-file"),
        (
            {"prometheus_url": "http://prometheus:9090", "prometheus_token_file": Path("t")},
            "--prometheus-token-file needs a --prometheus-url of https",
        ),
        (
            {"prometheus_url": "http://127.0.0.1.example:9090", "prometheus_token_file": Path("t")},
            "--prometheus-token-file needs a --prometheus-url of https",
        ),
        ({"prometheus_url": "https://me:SECRET@prometheus"}, "--prometheus-url is not https://HOST"),
        ({"prometheus_url": "https://prometheus?token=SECRET"}, "--prometheus-url is not https://HOST"),
        ({"prometheus_url": "https://prometheus:99999"}, "--prometheus-url is not https://HOST"),
    ],
)
def test_a_prometheus_that_cannot_be_asked_or_would_be_told_a_secret_is_refused(
    wrong: dict[str, Any], refusal: str
) -> None:
    with pytest.raises(ValueError, match=f"^{refusal}") as refused:
        Settings(**wrong)
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://user:ghp_SECRET@host/api/v3",
        "https://host/?token=ghp_SECRET",
        "https://host/api/v3/@ghp_SECRET",
        "https://host/ghp_SECRET",
        "https://host/api/v3#ghp_SECRET",
    ],
)
def test_a_refused_address_of_github_is_not_quoted_because_it_may_hold_a_credential(url: str) -> None:
    with pytest.raises(
        ValueError, match=r"^--github-url is not https://HOST or https://HOST/api/v3, such as"
    ) as refusal:
        Settings(github_url=url)
    assert "SECRET" not in str(refusal.value)


@pytest.mark.parametrize("length", ["", "24", "1 h", "-1h", "a day", "169h", "8d"])
def test_a_time_in_which_issues_are_opened_again_is_a_length_for_which_tickets_stay(length: str) -> None:
    with pytest.raises(ValueError, match=f"^--reopen-within is {length!r}, not a time of at most 7d, .*24h or 1h30m"):
        Settings(reopen_within=length)
    assert Settings(reopen_within="7d").reopen_within == "7d"


def test_shared_gpus_need_the_extender_that_binds_their_pods() -> None:
    with pytest.raises(ValueError, match="--listen-extender is needed for --shared-gpus"):
        Settings(shared_gpus=True)
    assert Settings(shared_gpus=True, listen_extender="127.0.0.1:8443", no_tls=True).shared_gpus


AM = "https://alertmanager-0.alertmanager.monitoring.svc:9093"


def test_a_pair_of_alertmanagers_that_can_be_asked_is_taken() -> None:
    pair = (AM, "http://127.0.0.1:9093/am")
    assert Settings(**TICKETS, alertmanager_url=pair, alertmanager_token_file=Path("t")).alertmanager_url == pair


@pytest.mark.parametrize(
    ("wrong", "refusal"),
    [
        ({"alertmanager_url": (AM, "")}, "--alertmanager-url is not at most 16 times https://HOST"),
        ({"alertmanager_url": (AM,) * 17}, "--alertmanager-url is not at most 16 times"),
        ({"alertmanager_url": ("https://me:SECRET@alertmanager",)}, "--alertmanager-url is not at most"),
        ({"alertmanager_matcher": 'cluster="a"'}, "--alertmanager-watchdog and --alertmanager-matcher"),
        ({"alertmanager_watchdog": "Watchdog"}, "--alertmanager-url is needed for --alertmanager-token-file"),
        (
            {"alertmanager_url": (AM, "http://alertmanager:9093"), "alertmanager_token_file": Path("t")},
            "--alertmanager-token-file needs each --alertmanager-url to be https",
        ),
    ],
)
def test_alertmanagers_that_cannot_be_asked_or_would_be_told_a_secret_are_refused(
    wrong: dict[str, Any], refusal: str
) -> None:
    with pytest.raises(ValueError, match=refusal) as refused:
        Settings(**TICKETS | wrong)
    assert "SECRET" not in str(refused.value)
