"""Metrics of tickets."""

from prometheus_client import Counter, Gauge

from remediator.metrics import REGISTRY

DELIVERIES = Counter(
    "remediator_alert_deliveries_total",
    "Posts to the webhook, by result: stored, later, bad, invalid, forbidden, too_large, too_slow, full.",
    ["result"],
    registry=REGISTRY,
)
ALERTS = Counter(
    "remediator_alerts_received_total", "Alerts in stored posts, by status.", ["status"], registry=REGISTRY
)
ISSUE_CALLS = Counter(
    "remediator_issue_calls_total",
    "Calls of the channel that carries tickets, by action and result: done, later, unsure, refused.",
    ["action", "result"],
    registry=REGISTRY,
)
CHAT_CALLS = Counter(
    "remediator_chat_calls_total",
    "Calls of rooms of a chat, by room, action (post, reply, edit, find) and result: done, later, unsure, refused.",
    ["room", "action", "result"],
    registry=REGISTRY,
)
COMMANDS = Counter(
    "remediator_comment_commands_total",
    "Commands in comments below issues, by command and result: decided, refused (no write access), unknown.",
    ["command", "result"],
    registry=REGISTRY,
)
HINTS = Counter(
    "remediator_comment_hints_total",
    "Posts of GitHub about comments, by result: received, ignored, bad, later, unsigned, too_large, too_slow, full.",
    ["result"],
    registry=REGISTRY,
)
TICKETS = Gauge("remediator_tickets", "Tickets, by phase.", ["phase"], registry=REGISTRY)
UNSYNCED = Gauge("remediator_unsynced_tickets", "Tickets whose issue cannot be written now.", registry=REGISTRY)
ROUTES_OUTDATED = Gauge(
    "remediator_ticket_routes_outdated",
    "1 while the routes file has a mistake and the routes from before count.",
    registry=REGISTRY,
)
ROOMS_OUTDATED = Gauge(
    "remediator_chat_rooms_outdated",
    "1 while the file of --chat has a mistake and the rooms from before count.",
    registry=REGISTRY,
)
TEMPLATE_ERRORS = Counter(
    "remediator_issue_template_errors_total",
    "Tickets whose template of their route gave no text; the shipped one did.",
    registry=REGISTRY,
)
