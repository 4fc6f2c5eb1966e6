"""The token of a watchdog shows in nothing that its container with a token prints, hands over or writes."""

from pathlib import Path

import take_orders
from take_orders import TakesOrders, takes_on

from nodelib.contract.order import OrderResult, say
from nodelib.k8s.api import Api
from tests.watchdog.test_take_orders import an_order

TOKEN = "the-token-of-this-pod"


def test_a_watchdog_shows_its_token_nowhere_whatever_the_api_server_and_its_file_do(api, folders, monkeypatch, capsys):
    """It hands an order over; the server does not know the token, refuses and fails; then the file holds two words."""
    monkeypatch.setattr(take_orders, "LOOK_SECONDS", 0)
    monkeypatch.setattr(take_orders, "AGAIN_SECONDS", 0)
    variables, (orders, answers) = api.environment(), folders
    token = Path(variables["TOKEN_DIR"]) / "token"
    takes_orders = TakesOrders(Api(variables, variables["TOKEN_DIR"]), "gpu-1", orders, answers)
    api.put(an_order())
    takes_on(takes_orders)
    seen = {f"order {file.name}": file.read_text() for file in orders.iterdir()}
    api.refuse(401, 403, 500)
    for text in (TOKEN, TOKEN, TOKEN, f"{TOKEN}\n{TOKEN}", ""):
        token.write_text(text)
        takes_on(takes_orders)
    token.write_text(TOKEN)
    say(answers, "op-1", OrderResult(0, "restarted kubelet"))
    takes_on(takes_orders)
    printed = capsys.readouterr()
    seen |= {"printed": printed.out + printed.err, "requests": str(api.requests), "pods": str(api.pods)}
    assert "the API server does not know the token" in seen["printed"]
    assert seen["printed"].count("refused by a planned fault") == 2
    assert seen["printed"].count("holds no token, or more than one word") == 2
    assert "restart-kubelet" in seen["order op-1.order"]
    assert "restarted kubelet" in seen["pods"]
    assert [where for where, text in seen.items() if TOKEN in text] == []
