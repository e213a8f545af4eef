"""One file per question, every peer beside us in one interleaved run. Start with `run.py`."""
