"""The benchmark of the webhook, small: each post is stored, and all figures are told."""

import pytest

from tests.bench.webhook import options, run

ASKED = ["--embedded", "--nodes", "5", "--rate", "50", "--posts", "10", "--alerts", "20", "--many", "20"]


@pytest.mark.sampled("benches", rare=True)
async def test_40_posts_about_5_nodes_are_stored_and_their_times_told() -> None:
    report = await run(options(ASKED))
    assert report["tickets"] >= 5
    assert report["body"] | {"seconds": 0, "bytes": 0} == {"alerts": 20, "nodes": 5, "bytes": 0, "seconds": 0}
    assert set(report["post_ms"]) == set(report["floor_ms"])
    assert report["resident_mib"]["end"] > 0
