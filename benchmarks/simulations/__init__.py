"""Simulations with a known truth, which say what the statistics of `svc.stats` are worth."""
