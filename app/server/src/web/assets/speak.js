// The panel that turns text into speech.

import { Problem, send } from "./api.js";
import { download, facts, field, fill, h, icon, languageName, lasting, size } from "./dom.js";
import { curlView, missing, problems, progress } from "./feedback.js";
import { PcmPlayer } from "./pcm.js";
import { Player } from "./player.js";
import { Waveform } from "./wave.js";

const EXAMPLE = "The tide was out, and the harbour lay quiet. A single gull walked along the wall as if it owned the place.";
const FORMATS = ["wav", "mp3", "opus", "flac", "pcm"];

export class SpeakPanel {
  constructor(root) {
    this.voices = {};
    this.problems = problems();
    this.progress = progress();
    this.curl = curlView();
    this.player = new Player();
    this.live = new Waveform({ label: "Speech as it arrives" });
    this.live.canvas.removeAttribute("tabindex");
    this.text = h("textarea", { spellcheck: "true", oninput: () => this.typed() });
    this.text.value = EXAMPLE;
    this.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !this.start.disabled) this.run();
    });
    this.model = h("select", { onchange: () => this.modelChanged() });
    this.voice = h("select");
    this.speed = h("input", { type: "range", min: "0.5", max: "2", step: "0.05", value: "1" });
    this.speedText = h("output", { class: "small muted number" }, "1.00×");
    this.speed.addEventListener("input", () => { this.speedText.textContent = `${Number(this.speed.value).toFixed(2)}×`; });
    this.count = h("span", { class: "small muted number" });
    this.start = h("button", { class: "primary", onclick: () => this.run() }, icon("play"), "Speak");
    this.cancel = h("button", { class: "quiet", hidden: true, onclick: () => this.stop() }, icon("stop"), "Stop");
    this.facts = h("div", { role: "status" });
    this.notes = h("div");
    this.files = h("div", { class: "row", role: "group", "aria-label": "Download the speech" });
    for (const name of FORMATS) {
      this.files.append(h("button", { class: "chip", onclick: () => this.save(name) }, icon("download"), name));
    }
    this.result = h("div", { class: "card stack", hidden: true }, this.live.canvas, this.player.element, this.facts, this.notes, this.files);
    this.none = missing("speech", ["kokoro", "piper-joe"]);
    this.none.hidden = true;
    this.card = h(
      "div",
      { class: "card stack" },
      field("Text", this.text),
      h("div", { class: "fields" }, field("Model", this.model), field("Voice", this.voice), field("Speed", this.speed, this.speedText)),
      h("div", { class: "row" }, this.start, this.cancel, this.count),
      this.progress.element,
      this.problems.element,
      this.curl.element,
    );
    root.append(
      h("h1", {}, "Text to speech"),
      h("p", { class: "lead" }, "Playback starts with the first sentence, while the rest is still being made."),
      this.none,
      this.card,
      this.result,
    );
    this.typed();
  }

  /** Takes the models of the server. */
  setModels(all) {
    const models = all.filter((model) => ["tts", "clon", "vdes"].includes(model.task));
    this.none.hidden = models.length > 0;
    this.card.hidden = !this.none.hidden;
    fill(this.model, models.map((model) => [model.id, model.id]));
    if (this.model.value !== this.asked) this.modelChanged();
  }

  typed() {
    const count = [...this.text.value].length;
    this.count.textContent = `${count} characters`;
    this.start.disabled = !this.text.value.trim() || !this.cancel.hidden;
  }

  /** Asks for the voices of the model; the server loads it for that. */
  async modelChanged() {
    const model = this.model.value;
    this.asked = model;
    if (!model || this.root?.hidden) return;
    fill(this.voice, [["", "Default"]]);
    try {
      this.voices[model] ??= (await (await send({ path: `v1/audio/voices?model=${encodeURIComponent(model)}` })).json()).data;
    } catch (error) {
      // Without a key nothing was tried; a model that cannot be loaded is not tried again by itself.
      if (error.status === 401) this.asked = null;
      this.problems.show(error);
      return;
    }
    if (this.model.value !== model) return;
    this.problems.clear();
    const named = this.voices[model].map((voice) => [voice.id, this.nameOf(voice)]);
    fill(this.voice, [["", "Default"], ...named.sort((a, b) => a[1].localeCompare(b[1]))]);
    const usual = this.voices[model].find((voice) => voice.default);
    if (usual) this.voice.value = usual.id;
  }

  nameOf(voice) {
    const about = [voice.language && languageName(voice.language), voice.gender].filter(Boolean).join(", ");
    return about ? `${voice.name} (${about})` : voice.name;
  }

  request(format) {
    const json = { model: this.model.value, input: this.text.value };
    if (this.voice.value) json.voice = this.voice.value;
    if (Number(this.speed.value) !== 1) json.speed = Number(this.speed.value);
    json.response_format = format;
    return { method: "POST", path: "v1/audio/speech", json };
  }

  async run() {
    this.stop();
    const abort = new AbortController();
    this.abort = abort;
    this.made = this.request("pcm");
    this.busy(true);
    this.curl.show(this.made, "speech.pcm");
    const times = { started: performance.now() };
    try {
      const response = await send(this.made, abort.signal);
      const rate = Number(response.headers.get("x-sample-rate")) || 24_000;
      this.sound = new PcmPlayer(rate);
      const warnings = response.headers.get("x-audiocpp-warning");
      this.notes.replaceChildren(...(warnings ? [h("p", { class: "note" }, warnings)] : []));
      await this.receive(response, times);
      this.files.hidden = false;
    } catch (error) {
      this.problems.show(error);
    }
    if (this.abort !== abort) return;
    this.busy(false);
    if (this.sound?.blocks.length) this.playOut();
  }

  async receive(response, times) {
    const reader = response.body.getReader();
    const requestId = response.headers.get("x-request-id") ?? "";
    for (;;) {
      const chunk = await reader.read().catch((error) => {
        if (error.name === "AbortError") throw error;
        throw new Problem("The speech broke off in the middle.", { requestId });
      });
      if (chunk.done) break;
      times.first ??= performance.now();
      this.sound.push(chunk.value);
      this.bytes = (this.bytes ?? 0) + chunk.value.length;
      this.showLive(times);
    }
    times.last = performance.now();
    this.showLive(times);
  }

  showLive(times) {
    const { sound } = this;
    this.result.hidden = false;
    this.live.set({ peaks: sound.peaks, duration: sound.duration, time: sound.heard });
    const spent = ((times.last ?? performance.now()) - times.started) / 1000;
    this.facts.replaceChildren(facts([
      ["First audio", `${Math.round(times.first - times.started)} ms`],
      ["Length", lasting(sound.duration)],
      ["Made in", lasting(spent)],
      ["Real-time factor", (spent / Math.max(sound.duration, 0.001)).toFixed(3)],
      ["Received", size(this.bytes)],
    ]));
  }

  /** No more arrives: the player takes over once everything was heard. */
  playOut() {
    const { sound } = this;
    const follow = () => {
      if (this.sound !== sound) return;
      this.live.set({ time: sound.heard });
      if (sound.playing) requestAnimationFrame(follow);
      else this.hand();
    };
    follow();
  }

  /** From playing as it arrives to a player for the whole. */
  hand() {
    this.player.load(this.sound.file());
    this.sound.close();
    this.live.canvas.hidden = true;
    this.player.element.hidden = false;
    this.cancel.hidden = true;
    this.typed();
  }

  busy(is) {
    if (!is) {
      this.progress.stop();
      this.cancel.hidden = !this.sound?.playing;
      this.typed();
      return;
    }
    this.bytes = 0;
    this.sound = null;
    this.problems.clear();
    this.progress.start("Speaking");
    this.cancel.hidden = false;
    this.start.disabled = true;
    this.result.hidden = true;
    this.files.hidden = true;
    this.live.canvas.hidden = false;
    this.player.element.hidden = true;
  }

  stop() {
    this.abort?.abort();
    this.abort = null;
    this.player.audio.pause();
    this.progress.stop();
    if (this.sound?.blocks.length && this.player.element.hidden) this.hand();
    else this.cancel.hidden = true;
    this.sound?.close();
    this.typed();
  }

  /** What was heard is at hand as wav and pcm; other formats are asked for. */
  async save(format) {
    if (format === "wav") return download(this.sound.file(), "speech.wav");
    if (format === "pcm") return download(new Blob(this.sound.blocks), "speech.pcm");
    const request = { ...this.made, json: { ...this.made.json, response_format: format } };
    this.curl.show(request, `speech.${format}`);
    this.progress.start(`Making ${format}`);
    try {
      download(await (await send(request)).blob(), `speech.${format}`);
    } catch (error) {
      this.problems.show(error);
    }
    this.progress.stop();
  }
}
