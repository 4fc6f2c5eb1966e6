"""Floods of alerts: one issue for what many nodes have, and so many new issues an hour, the most severe first."""
