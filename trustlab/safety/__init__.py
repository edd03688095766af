"""The chart, the safety table, and the rule check of a plan against both."""
