"""Simulations with a known truth: how often what `svc.stats` says is so."""
