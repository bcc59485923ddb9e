"""The HTTP interface: one blueprint a route."""
