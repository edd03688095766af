"""Holds a plan against a chart and the safety table."""
