"""Alerts and cases become tickets: one GitHub issue per node, alert or shared cause, with its own life cycle."""
