"""Speed and size of the service, each measured beside a bare twin in the same run; no tests."""
