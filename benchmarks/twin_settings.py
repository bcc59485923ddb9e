"""Gunicorn's settings for the twins: those of the service, without its hooks and its log."""

from __future__ import annotations

from svc.server import gunicorn_settings

# Gunicorn's own: how the service uses its threads is its own doing.
worker_class = "gthread"
workers = gunicorn_settings.workers
threads = gunicorn_settings.threads
worker_connections = gunicorn_settings.worker_connections
keepalive = gunicorn_settings.keepalive
timeout = gunicorn_settings.timeout
graceful_timeout = gunicorn_settings.graceful_timeout
control_socket_disable = gunicorn_settings.control_socket_disable
bind = "127.0.0.1:0"
