"""What a run's folder holds beside its tables: every reply, and the records."""
