"""A stand-in for audiocpp_server that answers the requests of the web page with made-up results.

It is for work on the page without models: python3 fake_server.py [port]
"""

import io
import json
import math
import struct
import sys
import time
import wave
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ASSETS = Path(__file__).resolve().parents[2] / "src" / "web" / "assets"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "media-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
WORDS = (
    "And so, my fellow Americans, ask not what your country can do for you, "
    "ask what you can do for your country."
).split()


def model(name, task, state="ready", languages=(), memory=0):
    info = {"languages": list(languages)}
    return {
        "id": name, "family": name.split("-")[0], "task": task, "state": state, "info": info,
        "voices": [], "default_voice": None, "queued": 0, "running": 0, "memory_bytes": memory,
        "restarts": 0, "note": None,
    }


MODELS = [
    model("whisper-base", "asr", languages=["en", "de", "fr", "ja"], memory=310_000_000),
    model("kokoro", "tts", memory=420_000_000),
    model("silero-vad", "vad", state="unloaded"),
    model("spleeter-2stems", "sep", state="busy", memory=190_000_000),
]
VOICES = [
    {"id": "af_heart", "name": "Heart", "language": "en-us", "gender": "female", "default": True},
    {"id": "bm_george", "name": "George", "language": "en-gb", "gender": "male", "default": False},
]


def tone(seconds, hertz, rate):
    count = int(seconds * rate)
    level = [12000 * abs(math.sin(i / rate * 2.2)) for i in range(count)]
    values = [int(a * math.sin(i / rate * hertz * math.tau)) for i, a in enumerate(level)]
    return struct.pack(f"<{count}h", *values)


def wav(samples, rate):
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples)
    return out.getvalue()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def log_message(self, *_):
        pass

    def head(self, status, kind, **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("x-request-id", "0f3c9a")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def json(self, value, status=200):
        self.head(status, "application/json")
        self.wfile.write(json.dumps(value).encode())

    def do_GET(self):
        path = self.path.split("?")[0]
        if path == "/v1/status":
            self.json({
                "version": "0.1.0", "device": "cpu", "uptime_seconds": 5, "running": 1, "queued": 0,
                "server_memory_bytes": 30_000_000, "model_memory_bytes": 920_000_000, "models": MODELS,
            })
        elif path == "/v1/audio/voices":
            self.json({"object": "list", "data": VOICES})
        else:
            name = "index.html" if path == "/" else path.removeprefix("/web/")
            file = ASSETS / name
            if "/" in name or not file.is_file():
                return self.json({"error": {"message": "there is no such route"}}, 404)
            self.head(200, TYPES[file.suffix], Content_Security_Policy=POLICY)
            self.wfile.write(file.read_bytes())

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answer = {
            "/v1/audio/transcriptions": self.transcribe, "/v1/audio/speech": self.speak,
            "/v1/audio/separations": self.separate, "/v1/audio/vad": self.detect,
        }.get(self.path)
        if answer is None:
            return self.json({"error": {"message": "there is no such route"}}, 404)
        answer(body)

    def event(self, value):
        self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
        self.wfile.flush()

    def transcribe(self, _):
        self.head(200, "text/event-stream")
        words = [{"word": w, "start": 0.4 * i, "end": 0.4 * i + 0.35} for i, w in enumerate(WORDS)]
        text = " ".join(WORDS)
        for at in range(0, len(WORDS), 8):
            part = " ".join(WORDS[at:at + 8])
            delta = part if at == 0 else " " + part
            self.event({"type": "transcript.text.delta", "delta": delta, "start": at * 0.4, "end": at * 0.4 + 3})
            time.sleep(0.1)
        self.event({
            "type": "transcript.text.done", "text": text, "language": "english", "duration": 11.0, "words": words,
            "segments": [{"id": 0, "start": 0.0, "end": 11.0, "text": text}], "usage": {},
        })

    def speak(self, body):
        request = json.loads(body)
        if "fail" in request["input"]:
            return self.json({"error": {"message": "`kokoro` has no voice `x`", "code": "voice_not_found"}}, 404)
        sound = tone(3.0, 220, 24_000)
        self.head(200, "audio/pcm", X_Sample_Rate="24000")
        for at in range(0, len(sound), 9_601):
            self.wfile.write(sound[at:at + 9_601])
            self.wfile.flush()
            time.sleep(0.03)

    def separate(self, _):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("vocals.wav", wav(tone(6.0, 440, 22_050), 22_050))
            archive.writestr("accompaniment.wav", wav(tone(6.0, 110, 22_050), 22_050))
        self.head(200, "application/zip")
        self.wfile.write(out.getvalue())

    def detect(self, _):
        curve = [abs(math.sin(i / 60)) for i in range(344)]
        segments = [{"start": 0.3, "end": 2.2}, {"start": 3.3, "end": 4.4}, {"start": 5.4, "end": 10.6}]
        self.json({"duration": 11.0, "speech": 8.2, "segments": segments, "frame": 0.032, "probabilities": curve})


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8123
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
