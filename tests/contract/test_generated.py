"""Generators write what has changed, and nothing else: tests read the same files at the same time."""

from deploy.generated import write


def test_a_file_that_holds_its_text_is_left_alone_and_the_others_are_written(tmp_path):
    kept, old, new = tmp_path / "kept.md", tmp_path / "old.md", tmp_path / "folder" / "new.md"
    kept.write_text("same")
    old.write_text("before")
    before = kept.stat().st_mtime_ns
    write({kept: "same", old: "after", new: "first"})
    assert (kept.stat().st_mtime_ns, old.read_text(), new.read_text()) == (before, "after", "first")
