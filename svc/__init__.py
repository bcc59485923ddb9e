"""A typed decision service: validated answers with true probabilities from language models."""

__version__ = "0.1.0"
