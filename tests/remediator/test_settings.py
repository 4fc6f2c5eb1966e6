"""What an operator may set."""

from dataclasses import fields
from datetime import timedelta
from pathlib import Path

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
    unset = {"routes", "webhook_token_file", "github_app_key_file"}
    nested = {"breaker_starts", "breaker_window_seconds"}
    assert set(shown) == {field.name for field in fields(Settings)} - {"breaker"} - unset | nested
    assert (shown["drains"], shown["github_token_file"]) == ("7", str(token))
    assert "hunter2" not in str(shown)


def test_settings_are_shown_flat_and_what_is_not_set_is_left_out() -> None:
    shown = Settings(breaker=Breaker(7, timedelta(minutes=5))).shown()
    assert (shown["breaker_starts"], shown["breaker_window_seconds"]) == ("7", "300.0")
    assert "None" not in shown.values()


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
