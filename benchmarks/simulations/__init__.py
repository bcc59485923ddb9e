"""Simulations with known truth, or with real classifiers: how true the figures of `svc.stats` are.

`python -m benchmarks.simulations` lists them; each prints a table.
"""
