"""A project board whose cards move with the phases of issues."""
