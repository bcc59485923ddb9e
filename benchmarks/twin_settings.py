"""Gunicorn's settings for the twins: those of the service, without its hooks and its log."""

from __future__ import annotations

from svc import serving

worker_class = "gthread"  # gunicorn's own: how the service uses its threads is its own doing
workers = serving.workers
threads = serving.threads
worker_connections = serving.worker_connections
keepalive = serving.keepalive
timeout = serving.timeout
graceful_timeout = serving.graceful_timeout
control_socket_disable = serving.control_socket_disable
bind = "127.0.0.1:0"
