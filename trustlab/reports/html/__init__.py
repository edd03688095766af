"""Shows answers, evidence and runs as HTML."""
