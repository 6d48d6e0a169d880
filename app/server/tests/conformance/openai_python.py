"""Runs the official `openai` Python client against a running server and checks every field.

    python openai_python.py --base-url http://127.0.0.1:8080/v1 --asr whisper-base --tts piper-joe \
        --audio speech.flac --expect "ask not"

`--vad` and `--sep` add the extensions, `--key` is the key of the server. The client does not check
what it reads, so that answers are read raw and held against its types by pydantic, strictly.
"""

import argparse
import asyncio
import base64
import io
import json
import struct
import sys
import wave

import openai
from openai.types.audio import (
    Transcription,
    TranscriptionTextDeltaEvent,
    TranscriptionTextDoneEvent,
    TranscriptionVerbose,
    Translation,
    TranslationVerbose,
)
from openai.types.model import Model

MAGIC = {
    "mp3": ("audio/mpeg", (b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"\xff\xe3", b"ID3")),
    "opus": ("audio/ogg", (b"OggS",)),
    "flac": ("audio/flac", (b"fLaC",)),
    "wav": ("audio/wav", (b"RIFF",)),
    "pcm": ("audio/pcm", (b"",)),
}
SENTENCES = "The first sentence is here. The second one follows it."
CHECKS = []


def check(function):
    """Adds a check to the list."""
    CHECKS.append(function)
    return function


def strict(kind, value):
    """Reads `value` as `kind`; a field that is missing or of another type is an error."""
    return kind.model_validate(value, strict=True)


def raises(kind, call):
    """The error of a call that has to fail in a certain way."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} did not come")


class Suite:
    """What the checks share."""

    def __init__(self, args):
        self.args = args
        # No second tries: each answer counts.
        self.client = openai.OpenAI(base_url=args.base_url, api_key=args.key, max_retries=0, timeout=300)
        self.file = open(args.audio, "rb").read()

    def upload(self, name="speech.flac"):
        return (name, self.file)

    def transcribe(self, **more):
        return self.client.audio.transcriptions.with_raw_response.create(
            file=self.upload(), model=self.args.asr, **more
        )

    def speak(self, **more):
        wanted = {"model": self.args.tts, "voice": "alloy", "input": SENTENCES, **more}
        return self.client.audio.speech.with_raw_response.create(**wanted)

    def expect_text(self, text):
        assert self.args.expect.lower() in text.lower(), text


@check
def models(suite):
    """The list, and each model by its id."""
    page = suite.client.models.list()
    ids = [model.id for model in page.data]
    assert suite.args.asr in ids and suite.args.tts in ids, ids
    for name in ids:
        raw = suite.client.models.with_raw_response.retrieve(name)
        model = strict(Model, json.loads(raw.content))
        assert model.id == name and model.object == "model" and model.created > 1_600_000_000
        assert model.owned_by == "audiocpp"
        assert raw.headers["x-request-id"]


@check
def speech_formats(suite):
    """Every format is what its head says, and lasts as long as the others."""
    lengths = {}
    for name, (kind, beginnings) in MAGIC.items():
        answer = suite.speak(response_format=name)
        assert answer.headers["content-type"] == kind, (name, answer.headers["content-type"])
        content = answer.content
        assert content.startswith(beginnings), (name, content[:4])
        lengths[name] = len(content)
    with wave.open(io.BytesIO(suite.speak(response_format="wav").content)) as file:
        seconds = file.getnframes() / file.getframerate()
        assert file.getnframes() > 0 and file.getsampwidth() == 2
    assert 1.0 < seconds < 20.0, seconds
    pcm = lengths["pcm"] / 2 / 24_000
    assert abs(pcm - seconds) < 0.5, (pcm, seconds)
    assert lengths["mp3"] < lengths["wav"] and lengths["opus"] < lengths["wav"]


@check
def speech_default_is_mp3(suite):
    """No format is mp3; OpenAI's voice reaches the default voice with a warning."""
    answer = suite.speak()
    assert answer.headers["content-type"] == "audio/mpeg"
    assert "alloy" in answer.headers.get("x-audiocpp-warning", ""), dict(answer.headers)
    assert answer.headers["x-request-id"]


@check
def speech_streams(suite):
    """Sound comes in parts; a streamed wav says that its length is not known."""
    parts = []
    with suite.client.audio.speech.with_streaming_response.create(
        model=suite.args.tts, voice={"id": "default"}, input=SENTENCES, response_format="wav", stream_format="audio"
    ) as answer:
        for part in answer.iter_bytes():
            parts.append(part)
    content = b"".join(parts)
    riff, data = struct.unpack_from("<I", content, 4)[0], struct.unpack_from("<I", content, 40)[0]
    assert content[:4] == b"RIFF" and riff == data == 0xFFFFFFFF
    assert len(parts) > 1


@check
def speech_events(suite):
    """`sse` gives events whose sound is one file."""
    text = suite.speak(response_format="flac", stream_format="sse").content.decode()
    events = [json.loads(line[5:]) for line in text.splitlines() if line.startswith("data:")]
    sound = b"".join(base64.b64decode(event["audio"]) for event in events[:-1])
    assert all(event["type"] == "speech.audio.delta" for event in events[:-1])
    assert sound.startswith(b"fLaC") and sound.count(b"fLaC") == 1
    assert events[-1]["type"] == "speech.audio.done"
    usage = events[-1]["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


@check
def speech_options(suite):
    """Speed changes the length; extensions of the body are taken."""
    def seconds(**more):
        content = suite.speak(response_format="wav", **more).content
        with wave.open(io.BytesIO(content)) as file:
            return file.getnframes() / file.getframerate()

    slow, fast = seconds(speed=0.8), seconds(speed=1.6)
    assert 1.5 < slow / fast < 2.6, (slow, fast)
    answer = suite.speak(extra_body={"seed": 3, "unknown_key": 1})
    assert "unknown_key" in ",".join(answer.headers.get_list("x-audiocpp-warning"))


@check
def speech_errors(suite):
    """Errors are the client's own types, with code, param and request id."""
    error = raises(openai.BadRequestError, lambda: suite.speak(response_format="aac"))
    assert error.param == "response_format" and error.code == "unsupported_value"
    assert error.type == "invalid_request_error" and error.request_id
    error = raises(openai.BadRequestError, lambda: suite.speak(input=" "))
    assert error.code == "empty_input" and error.param == "input"
    error = raises(openai.BadRequestError, lambda: suite.speak(input="..."))
    assert error.code == "nothing_to_speak"
    error = raises(openai.NotFoundError, lambda: suite.speak(model="no-such-model"))
    assert error.code == "model_not_found" and error.type == "not_found_error"
    error = raises(openai.NotFoundError, lambda: suite.speak(voice="../../etc/passwd"))
    assert error.code == "voice_not_found" and error.param == "voice"
    error = raises(openai.BadRequestError, lambda: suite.speak(speed=9))
    assert error.param == "speed"


@check
def transcription_json(suite):
    """json."""
    value = json.loads(suite.transcribe().content)
    answer = strict(Transcription, value)
    suite.expect_text(answer.text)
    assert value["usage"]["type"] == "duration" and value["usage"]["seconds"] > 0
    assert set(value) == {"text", "usage"}


@check
def transcription_verbose(suite):
    """verbose_json with segments and words; every field is there and makes sense."""
    raw = suite.transcribe(response_format="verbose_json", timestamp_granularities=["word", "segment"])
    value = json.loads(raw.content)
    for key in ("task", "language", "duration", "text", "segments", "words", "usage"):
        assert key in value, key
    answer = strict(TranscriptionVerbose, value)
    assert value["task"] == "transcribe" and answer.language == "english"
    suite.expect_text(answer.text)
    last = 0.0
    for number, segment in enumerate(answer.segments):
        assert segment.id == number
        assert last <= segment.start <= segment.end <= answer.duration + 0.01
        assert segment.tokens and segment.avg_logprob <= 0 and segment.compression_ratio > 0
        assert 0 <= segment.no_speech_prob <= 1 and 0 <= segment.temperature <= 1 and segment.seek >= 0
        last = segment.start
    assert len(answer.words) > 5
    last = 0.0
    for word in answer.words:
        assert word.word.strip() and last <= word.start <= word.end <= answer.duration + 0.01
        last = word.start
    assert "words" not in json.loads(suite.transcribe(response_format="verbose_json").content)


@check
def transcription_texts(suite):
    """text, srt and vtt come as text."""
    for name, kind in (("text", "text/plain"), ("srt", "text/plain"), ("vtt", "text/vtt")):
        raw = suite.transcribe(response_format=name)
        assert raw.headers["content-type"].startswith(kind), name
        text = raw.content.decode()
        suite.expect_text(text.replace("\n", " "))
        if name == "srt":
            assert text.startswith("1\n00:00:0") and " --> " in text
        if name == "vtt":
            assert text.startswith("WEBVTT\n\n")
        parsed = suite.client.audio.transcriptions.create(file=suite.upload(), model=suite.args.asr, response_format=name)
        assert isinstance(parsed, str) and parsed == text


@check
def transcription_streams(suite):
    """Events; all deltas together are the text."""
    kinds = {
        "transcript.text.delta": TranscriptionTextDeltaEvent,
        "transcript.text.done": TranscriptionTextDoneEvent,
    }
    for more in ({}, {"response_format": "verbose_json"}):
        stream = suite.client.audio.transcriptions.create(file=suite.upload(), model=suite.args.asr, stream=True, **more)
        events = [strict(kinds[event.type], event.to_dict()) for event in stream]
        deltas = "".join(event.delta for event in events if event.type == "transcript.text.delta")
        done = events[-1]
        assert done.type == "transcript.text.done" and done.text == deltas.strip()
        suite.expect_text(done.text)
        usage = done.usage
        assert usage.total_tokens == usage.input_tokens + usage.output_tokens and usage.output_tokens > 0
        assert ("segments" in done.model_extra) == bool(more)


@check
def transcription_options(suite):
    """Everything that the client can send is taken, or refused by name."""
    answer = suite.transcribe(language="en", prompt="A speech.", temperature=0.0, chunking_strategy="auto")
    suite.expect_text(json.loads(answer.content)["text"])
    rules = {"type": "server_vad", "threshold": 0.5, "prefix_padding_ms": 300, "silence_duration_ms": 500}
    suite.expect_text(json.loads(suite.transcribe(chunking_strategy=rules).content)["text"])
    error = raises(openai.BadRequestError, lambda: suite.transcribe(include=["logprobs"]))
    assert error.param == "include"
    error = raises(openai.BadRequestError, lambda: suite.transcribe(response_format="diarized_json"))
    assert error.param == "response_format" and "diarization" in error.message
    error = raises(openai.BadRequestError, lambda: suite.transcribe(language="xx-not"))
    assert error.param == "language"


@check
def transcription_errors(suite):
    """What is no sound is the client's fault, once."""
    create = suite.client.audio.transcriptions.create
    error = raises(openai.BadRequestError, lambda: create(file=("a.mp3", b"<html></html>"), model=suite.args.asr))
    assert error.param == "file" and error.response.headers["x-should-retry"] == "false"
    error = raises(openai.BadRequestError, lambda: create(file=("a.wav", b""), model=suite.args.asr))
    assert error.code == "empty_file"
    error = raises(openai.BadRequestError, lambda: create(file=suite.upload(), model=suite.args.tts))
    assert error.param == "model"


@check
def silence_is_no_text(suite):
    """30 s of silence are empty text."""
    sound = io.BytesIO()
    with wave.open(sound, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(bytes(2 * 16_000 * 30))
    create = suite.client.audio.transcriptions.with_raw_response.create
    raw = create(file=("silence.wav", sound.getvalue()), model=suite.args.asr, response_format="verbose_json")
    value = json.loads(raw.content)
    assert value["text"] == "" and value["segments"] == [], value


@check
def translations(suite):
    """Translations, whole and verbose; models of one language may refuse, by name."""
    create = suite.client.audio.translations.with_raw_response.create
    try:
        answer = strict(Translation, json.loads(create(file=suite.upload(), model=suite.args.asr).content))
    except openai.BadRequestError as error:
        assert "translat" in error.message, error.message
        return
    assert answer.text
    raw = create(file=suite.upload(), model=suite.args.asr, response_format="verbose_json")
    verbose = strict(TranslationVerbose, json.loads(raw.content))
    assert verbose.language == "english" and verbose.duration > 0


@check
def round_trip(suite):
    """What is spoken is understood."""
    spoken = suite.speak(input="The quick brown fox jumps over the lazy dog.", response_format="flac")
    heard = suite.client.audio.transcriptions.create(file=("fox.flac", spoken.content), model=suite.args.asr)
    if suite.args.real:
        assert "brown fox" in heard.text.lower(), heard.text


@check
def voices(suite):
    """Voices are objects; a model that cannot copy voices says so."""
    value = suite.client.get(f"/audio/voices?model={suite.args.tts}", cast_to=object)
    assert value["object"] == "list" and value["data"], value
    for voice in value["data"]:
        assert voice["object"] == "audio.voice" and voice["id"] and voice["name"]
    spoken = suite.speak(voice=value["data"][0]["id"])
    assert spoken.headers["content-type"] == "audio/mpeg"
    made = suite.client.audio.voices.with_raw_response
    try:
        voice = made.create(audio_sample=suite.upload(), consent="cons_1", name="conformance")
    except openai.BadRequestError as error:
        assert error.code == "unsupported_value", error
        return
    value = json.loads(voice.content)
    assert value["object"] == "audio.voice" and value["type"] == "audio_sample"
    gone = json.loads(made.delete(value["id"]).content)
    assert gone == {"id": value["id"], "object": "audio.voice.deleted", "deleted": True}


@check
def extensions(suite):
    """Voice activity and separation, with models that were named."""
    if suite.args.vad:
        value = suite.client.post("/audio/vad", cast_to=object, body={"model": suite.args.vad},
                                  files={"file": suite.upload()},
                                  options={"headers": {"content-type": "multipart/form-data"}})
        assert value["segments"] and value["duration"] > 0, value
        for span in value["segments"]:
            assert 0 <= span["start"] < span["end"] <= value["duration"] + 0.01


@check
def many_at_once(suite):
    """Sixteen requests at a time each get their own answer."""
    async def all_of_them():
        client = openai.AsyncOpenAI(base_url=suite.args.base_url, api_key=suite.args.key, max_retries=4, timeout=600)
        async def one(at):
            name = list(MAGIC)[at % len(MAGIC)]
            answer = await client.audio.speech.with_raw_response.create(
                model=suite.args.tts, voice="default", input=f"Number {at}.", response_format=name)
            assert answer.headers["content-type"] == MAGIC[name][0]
            assert answer.content.startswith(MAGIC[name][1])
        await asyncio.gather(*(one(at) for at in range(16)))
    asyncio.run(all_of_them())


def main():
    """Runs every check; the exit code is the number of those that failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--asr", required=True)
    parser.add_argument("--tts", required=True)
    parser.add_argument("--vad")
    parser.add_argument("--audio", required=True, help="a recording of English speech")
    parser.add_argument("--expect", required=True, help="words of the recording")
    parser.add_argument("--real", action="store_true", help="the models understand what is spoken")
    parser.add_argument("--key", default="none")
    parser.add_argument("--only", help="part of a check's name")
    args = parser.parse_args()
    suite, failed = Suite(args), 0
    for one in CHECKS:
        if args.only and args.only not in one.__name__:
            continue
        try:
            one(suite)
            print(f"ok      {one.__name__}")
        except Exception as error:  # every failure is shown before the end
            failed += 1
            print(f"FAILED  {one.__name__}: {type(error).__name__}: {error}")
    print(f"openai {openai.__version__}: {failed} failed")
    sys.exit(min(failed, 100))


if __name__ == "__main__":
    main()
