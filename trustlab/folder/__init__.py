"""What a run's folder holds beside its tables: every reply, and the records; and what is kept of
the published runs."""
