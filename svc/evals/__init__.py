"""Labelled questions: read, sampled, scored, saved, compared and shown."""
