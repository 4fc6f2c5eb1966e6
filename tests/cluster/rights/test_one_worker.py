"""With the credentials of a worker, of a tenant, or of any Pod of ours there, nobody gets beyond that worker."""

import pytest

from tests.cluster.rights.attacks import ATTACKS, Attack
from tests.cluster.rights.world import World

ALLOWED = (200, 201, 409)  # a conflict with another version is met after the right to write
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]


@pytest.mark.parametrize("attack", ATTACKS, ids=[attack.words for attack in ATTACKS])
def test_who_has_the_credentials_of_one_worker_gets_nowhere_but_there(world: World, attack: Attack) -> None:
    asked = world.exact(attack.request)
    replies = {name: speaker(asked) for name, speaker in world.speakers.items()}
    others = {name: reply for name, reply in replies.items() if name not in attack.succeeds}
    assert {name: (reply.status, reply.text[:200]) for name, reply in others.items() if not reply.refused} == {}
    assert {name: replies[name].text for name in attack.succeeds if replies[name].status not in ALLOWED} == {}
