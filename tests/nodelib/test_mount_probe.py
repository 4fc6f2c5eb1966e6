"""How many children are left behind by mounts that hang: few, whatever the number of mounts."""

from nodelib.host.child_process import ChildAnswer
from nodelib.net.mount_probe import TOO_LATE, WHILE_OTHERS_HANG, bounded

FINE, HUNG = ChildAnswer({"errno": 0, "done": True}), ChildAnswer({}, silent_since="2026-01-01T00:00Z")


class Node:
    """A node whose mounts are (server, number); those of `dead` servers hang, each with a child of its own."""

    def __init__(self, *mounts, dead=()):
        self.mounts, self.dead, self.children, self.started = mounts, dead, set(), 0

    def put(self, mount):
        if mount in self.children:
            return HUNG
        self.started += 1
        if mount[0] in self.dead:
            self.children.add(mount)
            return HUNG
        return FINE

    def look(self):
        return bounded(self.mounts, lambda mount: mount[0], lambda mount: mount in self.children, self.put)


def many(server, count):
    return [(server, number) for number in range(count)]


def test_120_mounts_of_a_server_that_hangs_leave_8_children_behind_however_often_they_are_asked():
    node = Node(*many("a", 120), dead="a")
    for _ in range(5):
        answers = node.look()
        assert len(answers) == 120
    assert len(node.children) == 8
    assert {answer.why for answer in answers.values()} == {"", WHILE_OTHERS_HANG}


def test_mounts_of_a_server_that_answers_are_all_asked_whatever_their_number():
    node = Node(*many("a", 120))
    assert all(answer is FINE for answer in node.look().values())
    assert node.started == 120


def test_mounts_of_other_servers_are_asked_in_the_next_run_at_the_latest():
    node = Node(*many("a", 120), *many("b", 40), dead="a")
    first, second = node.look(), node.look()
    assert all(second[mount] is FINE for mount in many("b", 40))
    assert {first[mount].why for mount in many("b", 40)} <= {"", TOO_LATE, WHILE_OTHERS_HANG}
    assert len(node.children) == 8


def test_no_more_children_than_24_run_at_a_time():
    node = Node(*(mount for server in "abcdef" for mount in many(server, 20)), dead="abcdef")
    node.look()
    assert len(node.children) == 24
    node.look()
    assert len(node.children) <= 6 * 8
