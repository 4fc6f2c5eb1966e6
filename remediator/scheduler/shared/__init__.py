"""GPUs that Pods share by memory: which card a Pod gets, and the ledgers that keep a card from being sold twice."""
