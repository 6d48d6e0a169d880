"""Tests of the Wyoming side with the protocol's own Python client, against a server that runs.

    pip install wyoming
    python3 wyoming_test.py 127.0.0.1 10300 [--speech jfk.wav]

The server needs a model for asr and one for tts. --speech is a WAV file (16 bits) of the words that
tests/speech/jfk.flac holds; without it the server's own speech is recognised.
"""

import argparse
import asyncio
import re
import struct
import sys
import time
import traceback
import wave

from wyoming.asr import Transcribe, Transcript, TranscriptChunk, TranscriptStart, TranscriptStop
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncTcpClient
from wyoming.error import Error
from wyoming.info import Describe, Info
from wyoming.ping import Ping, Pong
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeStopped,
    SynthesizeVoice,
)

PATIENCE = 180
SAID = "Please turn on the kitchen light. Thank you very much."


def plain(text):
    return re.sub(r"[^a-z ]", "", text.lower())


class Tests:
    def __init__(self, options):
        self.options = options

    def client(self):
        return AsyncTcpClient(self.options.host, self.options.port)

    async def next(self, client):
        return await asyncio.wait_for(client.read_event(), PATIENCE)

    async def until(self, client, last):
        events = []
        while not events or not last.is_type(events[-1].type):
            event = await self.next(client)
            assert event is not None, f"closed before {last.__name__}"
            assert not Error.is_type(event.type), event.data
            events.append(event)
        return events

    async def info(self):
        async with self.client() as client:
            await client.write_event(Describe().event())
            return Info.from_event((await self.until(client, Info))[-1])

    async def speak(self, text, voice=None):
        async with self.client() as client:
            await client.write_event(Synthesize(text=text, voice=voice).event())
            return self.sound(await self.until(client, AudioStop))

    def sound(self, events):
        start = AudioStart.from_event(events[0])
        chunks = [AudioChunk.from_event(event) for event in events if AudioChunk.is_type(event.type)]
        assert all((c.rate, c.width, c.channels) == (start.rate, 2, start.channels) for c in chunks)
        return start.rate, b"".join(chunk.audio for chunk in chunks)

    async def hear(self, rate, samples, **asked):
        async with self.client() as client:
            await client.write_event(Transcribe(**asked).event())
            await client.write_event(AudioStart(rate=rate, width=2, channels=1).event())
            for at in range(0, len(samples), 2048):
                part = samples[at:at + 2048]
                await client.write_event(AudioChunk(rate=rate, width=2, channels=1, audio=part).event())
            await client.write_event(AudioStop().event())
            return await self.until(client, TranscriptStop)

    async def recording(self):
        if not self.options.speech:
            return (*await self.speak(SAID), ["kitchen", "light"])
        with wave.open(self.options.speech) as file:
            return file.getframerate(), file.readframes(file.getnframes()), ["country", "can", "do", "for", "you"]

    # Each test below is one promise.

    async def test_describe(self):
        info = await self.info()
        assert len(info.asr) == 1 and len(info.tts) == 1, info
        models, voices = info.asr[0].models, info.tts[0].voices
        assert models and all(m.installed and m.languages and m.attribution.name for m in models), models
        assert voices and all(v.installed and v.languages and v.description for v in voices), voices
        assert len({voice.name for voice in voices}) == len(voices)
        assert info.asr[0].supports_transcript_streaming and info.tts[0].supports_synthesize_streaming
        print(f"      {len(models)} models, {len(voices)} voices: {voices[0].name} {voices[0].languages}, ...")

    async def test_transcribe(self):
        rate, samples, words = await self.recording()
        events = await self.hear(rate, samples, language="en")
        assert TranscriptStart.is_type(events[0].type)
        whole = [Transcript.from_event(e) for e in events if Transcript.is_type(e.type)]
        parts = "".join(TranscriptChunk.from_event(e).text for e in events if TranscriptChunk.is_type(e.type))
        assert len(whole) == 1 and whole[0].language == "en", whole
        assert all(word in plain(whole[0].text) for word in words), whole[0].text
        assert plain(parts).split() == plain(whole[0].text).split(), parts
        print(f"      {whole[0].text}")

    async def test_stop_without_sound(self):
        events = await self.hear(16_000, b"", language="en")
        assert [e.data["text"] for e in events if Transcript.is_type(e.type)] == [""]

    async def test_every_voice_of_a_few(self):
        voices = (await self.info()).tts[0].voices
        for voice in voices[:2] + voices[-1:]:
            rate, samples = await self.speak("Hello there.", SynthesizeVoice(name=voice.name))
            values = struct.unpack(f"<{len(samples) // 2}h", samples)
            assert 0.4 < len(values) / rate < 6, (voice.name, len(values) / rate)
            assert max(map(abs, values)) > 1000, voice.name

    async def test_synthesis_in_a_stream(self):
        async with self.client() as client:
            await client.write_event(SynthesizeStart().event())
            started = time.monotonic()
            first = None
            events = []
            for piece in re.findall(r"\S+\s*", SAID + " That is all. Good bye."):
                await client.write_event(SynthesizeChunk(text=piece).event())
            # Sound of the first sentences comes before the text ends.
            while not (events and AudioChunk.is_type(events[-1].type)):
                events.append(await self.next(client))
            first = time.monotonic() - started
            await client.write_event(Synthesize(text=SAID).event())
            await client.write_event(SynthesizeStop().event())
            events += await self.until(client, SynthesizeStopped)
        kinds = [event.type for event in events]
        assert kinds.count("audio-start") == kinds.count("audio-stop") == 1, set(kinds)
        rate, samples = self.sound(events)
        assert 3 < len(samples) / 2 / rate < 15, len(samples) / 2 / rate
        heard = await self.hear(rate, samples, language="en")
        text = next(e.data["text"] for e in heard if Transcript.is_type(e.type))
        assert "kitchen" in plain(text) and "all" in plain(text), text
        print(f"      first sound after {first:.2f} s: {text}")

    async def test_faults_are_told_and_close_the_connection(self):
        wrong = [
            Synthesize(text="a", voice=SynthesizeVoice(name="nobody")).event(),
            AudioChunk(rate=16_000, width=1, channels=1, audio=b"aa").event(),
        ]
        for event in wrong:
            async with self.client() as client:
                await client.write_event(event)
                error = Error.from_event(await self.next(client))
                assert error.code in ("not-found", "bad-input") and "request wyoming-" in error.text, error
                assert await self.next(client) is None

    async def test_garbage_harms_nobody(self):
        async with self.client() as other:
            for garbage in [b"\x00" * 200_000, b'{"type":"x","payload_length":99999999999}\n', b'{"type":', b"\n"]:
                reader, writer = await asyncio.open_connection(self.options.host, self.options.port)
                writer.write(garbage)
                writer.write_eof()
                await asyncio.wait_for(reader.read(), 20)
                writer.close()
            await other.write_event(Ping(text="still there?").event())
            assert Pong.from_event(await self.next(other)).text == "still there?"

    async def test_a_client_that_leaves_frees_the_model(self):
        reader, writer = await asyncio.open_connection(self.options.host, self.options.port)
        text = ("This is a long text that takes its time. " * 400).encode()
        data = b'{"text": "' + text + b'"}'
        writer.write(b'{"type": "synthesize", "data_length": %d}\n' % len(data) + data)
        await asyncio.wait_for(reader.readline(), PATIENCE)
        writer.close()
        started = time.monotonic()
        await self.speak("Next.")
        waited = time.monotonic() - started
        assert waited < 20, waited
        print(f"      the next client was served after {waited:.2f} s")


async def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--speech")
    parser.add_argument("--only", default="")
    tests = Tests(parser.parse_args())
    failed = 0
    for name in [n for n in dir(Tests) if n.startswith("test_") and tests.options.only in n]:
        try:
            await getattr(tests, name)()
            print(f"ok    {name}", flush=True)
        except Exception:
            failed += 1
            print(f"FAIL  {name}\n{traceback.format_exc()}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
