"""Gunicorn's worker, made so that slow callers hold up nobody but themselves."""
