"""What labels teach: calibrators, prediction sets, and the reports on both."""
