"""Alerts and cases become tickets: one GitHub issue that mirrors one case, with a life cycle of its own."""
