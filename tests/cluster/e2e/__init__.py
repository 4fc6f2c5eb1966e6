"""The whole path: a real detector sees a lost GPU, and the controller brings the node through to its release."""
