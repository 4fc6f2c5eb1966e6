"""The extender over HTTP scores as the replay does."""

from remediator.scheduler.packing.replay.synthetic import synthetic
from remediator.scheduler.score import Scorer
from remediator.web.replay import agreement


async def test_the_extender_scores_every_node_as_the_replay_does() -> None:
    found = await agreement(synthetic(), 42, 60)
    assert (found.pods, found.differing) == (60, 0)
    assert 0 < found.median <= found.slowest


async def test_an_extender_that_scores_otherwise_is_noticed(monkeypatch) -> None:
    of = Scorer.of
    monkeypatch.setattr(Scorer, "of", lambda *given: of(*given) + 1)
    assert (await agreement(synthetic(), 42, 5)).differing == 5
