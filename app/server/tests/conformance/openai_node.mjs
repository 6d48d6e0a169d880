// Runs the official `openai` JavaScript client against a running server and checks every field.
//
//   node openai_node.mjs --base-url http://127.0.0.1:8080/v1 --asr whisper-base --tts piper-joe \
//       --audio speech.flac --expect "ask not"
//
// The package is looked up from the current folder.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const { values: args } = parseArgs({
  options: {
    "base-url": { type: "string" },
    asr: { type: "string" },
    tts: { type: "string" },
    audio: { type: "string" },
    expect: { type: "string" },
    key: { type: "string", default: "none" },
  },
});
const resolve = createRequire(join(process.cwd(), "package.json")).resolve;
const { default: OpenAI, toFile } = await import(pathToFileURL(resolve("openai")));
const { VERSION } = await import(pathToFileURL(resolve("openai/version")));

// No second tries: each answer counts.
const client = new OpenAI({ baseURL: args["base-url"], apiKey: args.key, maxRetries: 0, timeout: 300_000 });
const content = readFileSync(args.audio);
// A browser's recorder writes types with parameters; the file stands before other fields.
const upload = () => toFile(content, "speech.flac", { type: "audio/flac;codecs=flac" });
const sentences = "The first sentence is here. The second one follows it.";
const wanted = args.expect.toLowerCase();

const keys = (object) => Object.keys(object).sort();
const transcribe = async (more) =>
  client.audio.transcriptions.create({ file: await upload(), model: args.asr, ...more });
const speak = (more) =>
  client.audio.speech.create({ model: args.tts, voice: "nova", input: sentences, ...more });
const bytes = async (answer) => Buffer.from(await answer.arrayBuffer());

const checks = {
  async models() {
    const ids = [];
    for await (const model of client.models.list()) ids.push(model.id);
    assert(ids.includes(args.asr) && ids.includes(args.tts));
    for (const id of ids) {
      const model = await client.models.retrieve(id);
      assert.deepEqual([model.id, model.object, model.owned_by], [id, "model", "audiocpp"]);
      assert.equal(typeof model.created, "number");
    }
  },
  async "speech formats"() {
    const kinds = {
      mp3: ["audio/mpeg", /^\xff/], opus: ["audio/ogg", /^OggS/], flac: ["audio/flac", /^fLaC/],
      wav: ["audio/wav", /^RIFF/], pcm: ["audio/pcm", /^/],
    };
    for (const [name, [kind, magic]] of Object.entries(kinds)) {
      const answer = await speak({ response_format: name });
      assert.equal(answer.headers.get("content-type"), kind);
      assert.match((await bytes(answer)).subarray(0, 4).toString("latin1"), magic);
    }
    const usual = await speak({});
    assert.equal(usual.headers.get("content-type"), "audio/mpeg");
    assert.match(usual.headers.get("x-audiocpp-warning"), /nova/);
    await bytes(usual);
  },
  async "speech in a stream"() {
    const answer = await speak({ response_format: "pcm", stream_format: "audio" });
    let length = 0;
    for await (const part of answer.body) length += part.length;
    assert(length > 24_000 * 2, `${length} bytes`);
  },
  async "transcription as json"() {
    const answer = await transcribe({});
    assert.deepEqual(keys(answer).filter((key) => key !== "_request_id"), ["text", "usage"]);
    assert(answer.text.toLowerCase().includes(wanted), answer.text);
    assert.equal(answer.usage.type, "duration");
    assert(answer._request_id);
  },
  async "transcription with everything"() {
    const answer = await transcribe({
      response_format: "verbose_json",
      timestamp_granularities: ["word", "segment"],
    });
    assert.deepEqual(keys(answer).filter((key) => key !== "_request_id"),
      ["duration", "language", "segments", "task", "text", "usage", "words"]);
    assert.equal(typeof answer.duration, "number");
    for (const segment of answer.segments) {
      assert.deepEqual(keys(segment), ["avg_logprob", "compression_ratio", "end", "id",
        "no_speech_prob", "seek", "start", "temperature", "text", "tokens"]);
    }
    for (const word of answer.words) assert.deepEqual(keys(word), ["end", "start", "word"]);
    assert(answer.words.length > 5);
  },
  async "transcription as text"() {
    for (const name of ["text", "srt", "vtt"]) {
      const answer = await transcribe({ response_format: name });
      assert.equal(typeof answer, "string", name);
      assert(answer.toLowerCase().replace(/\n/g, " ").includes(wanted), answer);
    }
  },
  async "transcription in a stream"() {
    const stream = await transcribe({ stream: true });
    let text = "";
    let done;
    for await (const event of stream) {
      if (event.type === "transcript.text.delta") text += event.delta;
      else done = event;
    }
    assert.equal(done.type, "transcript.text.done");
    assert.equal(done.text, text.trim());
    assert(text.toLowerCase().includes(wanted), text);
    assert.deepEqual(keys(done.usage), ["input_tokens", "output_tokens", "total_tokens", "type"]);
  },
  async "chunking by voice activity"() {
    const rules = { type: "server_vad", threshold: 0.5, prefix_padding_ms: 300, silence_duration_ms: 500 };
    for (const chunking_strategy of ["auto", rules]) {
      const answer = await transcribe({ chunking_strategy });
      assert(answer.text.toLowerCase().includes(wanted), answer.text);
    }
  },
  async errors() {
    await assert.rejects(speak({ response_format: "aac" }), (error) =>
      error instanceof OpenAI.BadRequestError && error.param === "response_format" &&
      error.type === "invalid_request_error" && Boolean(error.requestID));
    await assert.rejects(speak({ model: "no-such-model" }), (error) =>
      error instanceof OpenAI.NotFoundError && error.code === "model_not_found");
    await assert.rejects(transcribe({ include: ["logprobs"] }), (error) =>
      error instanceof OpenAI.BadRequestError && error.param === "include");
    const html = await toFile(Buffer.from("<html></html>"), "a.mp3");
    await assert.rejects(client.audio.transcriptions.create({ file: html, model: args.asr }), (error) =>
      error instanceof OpenAI.BadRequestError && error.param === "file");
  },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}: ${error.stack}`);
  }
}
console.log(`openai ${VERSION}: ${failed} failed`);
process.exit(Math.min(failed, 100));
