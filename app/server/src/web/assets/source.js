// Where a panel gets its sound from: a file that is chosen or dropped, or the microphone.

import { clock, h, icon, lasting, size } from "./dom.js";
import { Player } from "./player.js";
import { Recorder } from "./recorder.js";
import { Waveform } from "./wave.js";

/** Places of the waveform of a recording that is being made, 20 a second. */
const LIVE = 240;

export class Source {
  /** `microphone` offers to record; `onfile` is told the file, or nothing. */
  constructor({ microphone = true, what = "an audio or video file", size: height = "", onfile, onproblem }) {
    Object.assign(this, { what, onfile, onproblem, file: null });
    this.player = new Player({ size: height });
    this.input = h("input", { type: "file", accept: "audio/*,video/*,.opus,.caf,.flac,.mka", hidden: true });
    this.input.addEventListener("change", () => {
      if (this.input.files[0]) this.take(this.input.files[0]);
      this.input.value = "";
    });
    this.empty = this.dropView(microphone);
    this.live = this.recordingView();
    this.full = this.fileView();
    this.element = h("div", {}, this.input, this.empty, this.live, this.full);
    this.acceptDrops();
    this.show(this.empty);
  }

  show(view) {
    for (const one of [this.empty, this.live, this.full]) one.hidden = one !== view;
  }

  dropView(microphone) {
    const choose = h("button", { class: "quiet", onclick: () => this.input.click() }, icon("upload"), "Choose a file");
    const record = h("button", { class: "primary", onclick: () => this.record() }, icon("mic"), "Record");
    this.first = microphone ? record : choose;
    const buttons = microphone ? [record, choose] : [choose];
    return h(
      "div",
      { class: "drop" },
      h("div", { class: "row" }, ...buttons),
      h("p", { class: "small muted" }, `or drop ${this.what} here`),
    );
  }

  recordingView() {
    this.level = h("i");
    this.meter = h("div", { class: "meter", role: "meter", "aria-label": "Level", "aria-valuemin": "0", "aria-valuemax": "100" }, this.level);
    this.time = h("span", { class: "number" }, "0:00");
    this.liveWave = new Waveform({ label: "Recording" });
    this.liveWave.canvas.removeAttribute("tabindex");
    this.liveWave.canvas.setAttribute("role", "img");
    this.done = h("button", { class: "primary round stop", "aria-label": "Stop recording", onclick: () => this.finish() }, icon("stop"));
    return h(
      "div",
      { class: "recording" },
      this.done,
      h("div", { class: "grow stack" }, this.liveWave.canvas, this.meter),
      this.time,
    );
  }

  fileView() {
    this.name = h("b");
    this.facts = h("span", { class: "small muted number" });
    const again = h("button", { class: "icon", "aria-label": "Use another file", title: "Use another file", onclick: () => this.clear() }, icon("close"));
    return h("div", { class: "stack" }, h("div", { class: "file" }, h("div", { class: "grow file" }, this.name, this.facts), again), this.player.element);
  }

  acceptDrops() {
    let depth = 0;
    const mark = () => this.empty.classList.toggle("over", depth > 0);
    this.element.addEventListener("dragenter", () => { depth += 1; mark(); });
    this.element.addEventListener("dragleave", () => { depth -= 1; mark(); });
    this.element.addEventListener("dragover", (event) => event.preventDefault());
    this.element.addEventListener("drop", (event) => {
      event.preventDefault();
      depth = 0;
      mark();
      if (event.dataTransfer.files[0]) this.take(event.dataTransfer.files[0]);
    });
  }

  /** Takes `file` as the sound of the panel. */
  take(file) {
    this.file = file;
    this.name.textContent = file.name;
    this.name.title = file.name;
    this.facts.textContent = size(file.size);
    this.player.load(file);
    this.player.audio.addEventListener("loadedmetadata", () => {
      const { duration } = this.player.audio;
      if (this.file === file && Number.isFinite(duration)) this.facts.textContent = `${size(file.size)}, ${lasting(duration)}`;
    }, { once: true });
    this.show(this.full);
    this.onfile(file);
  }

  clear() {
    this.player.free();
    this.file = null;
    this.show(this.empty);
    this.first.focus();
    this.onfile(null);
  }

  async record() {
    const peaks = new Float32Array(LIVE);
    const recorder = new Recorder((peak, seconds) => {
      peaks.copyWithin(0, 1);
      peaks[LIVE - 1] = peak;
      this.liveWave.set({ peaks, duration: 1, time: 1 });
      this.level.style.transform = `scaleX(${Math.min(1, peak).toFixed(3)})`;
      this.level.classList.toggle("loud", peak >= 0.99);
      this.meter.setAttribute("aria-valuenow", String(Math.round(peak * 100)));
      this.time.textContent = clock(seconds);
    });
    try {
      await recorder.start();
    } catch (error) {
      this.onproblem(error);
      return;
    }
    this.recorder = recorder;
    this.liveWave.set({ peaks });
    this.show(this.live);
    this.done.focus();
  }

  async finish() {
    const { recorder } = this;
    this.recorder = null;
    if (recorder) this.take(await recorder.stop());
  }
}
