"""What a notebook shows as HTML: dialogues, replies, evidence, charts, a run to look into."""
