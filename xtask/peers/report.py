"""What every driver prints: one line of JSON with seconds, text and peak memory."""
import json
import resource


def peak_mib(whose=resource.RUSAGE_SELF):
    """Most memory resident at once, in MiB (Linux counts in KiB)."""
    return resource.getrusage(whose).ru_maxrss / 1024


def report(load, wall, text, settings, peak=None):
    """`load`: seconds to load the model; `wall`: seconds from the path of the recording to its text."""
    peak = peak_mib() if peak is None else peak
    print(json.dumps({"load": load, "wall": wall, "text": text, "peak_mib": peak, "settings": settings}))
