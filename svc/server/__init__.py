"""How requests arrive: gunicorn's settings, the checks before the start, and the worker."""
