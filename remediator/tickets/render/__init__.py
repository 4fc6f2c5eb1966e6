"""The text of an issue."""
