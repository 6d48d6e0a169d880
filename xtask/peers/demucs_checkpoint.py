"""demucs_checkpoint.py NAME OUT.safetensors CLIP.wav SECONDS: a network of a released size under formula
weights, in the form in which demucs publishes its models, and a made recording.
"""
import json
import sys
import wave
from fractions import Fraction
from pathlib import Path

import numpy as np
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "reference"))
from demucs_reference import RELEASED, sound  # noqa: E402
from formula_weights import fill  # noqa: E402

name, checkpoint, clip, seconds = sys.argv[1:]
cls, kwargs = RELEASED[name]
model = fill(cls(**kwargs))
plain = {k: {"_type": "fraction", "numerator": v.numerator, "denominator": v.denominator}
         if isinstance(v, Fraction) else v for k, v in kwargs.items()}
metadata = {"klass": f"{cls.__module__}.{cls.__name__}", "args": "[]", "kwargs": json.dumps(plain)}
save_file({k: v.contiguous() for k, v in model.state_dict().items()}, checkpoint, metadata)
samples = sound("clip", 2, 44100 * int(seconds))[0].t().numpy()
with wave.open(clip, "wb") as file:
    file.setnchannels(2)
    file.setsampwidth(2)
    file.setframerate(44100)
    file.writeframes((samples * 32767).astype(np.int16).tobytes())
