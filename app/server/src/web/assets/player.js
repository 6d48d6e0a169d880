// A player for one file: play button, waveform to seek in, times.

import { clock, h, icon } from "./dom.js";
import { Waveform, filePeaks } from "./wave.js";

export class Player {
  constructor({ size = "" } = {}) {
    this.audio = new Audio();
    this.audio.preload = "metadata";
    this.wave = new Waveform({ size });
    this.wave.onseek = (time) => this.seek(time);
    this.button = h("button", { class: "primary round", "aria-label": "Play" }, icon("play"));
    this.button.addEventListener("click", () => this.toggle());
    this.now = h("span", {}, "0:00");
    this.whole = h("span", {}, "0:00");
    this.element = h(
      "div",
      { class: `player ${size}` },
      this.button,
      h("div", { class: "grow" }, this.wave.canvas, h("div", { class: "times" }, this.now, this.whole)),
    );
    /** Called with the time while it plays and after a seek. */
    this.ontime = null;
    for (const name of ["play", "pause", "ended"]) this.audio.addEventListener(name, () => this.changed());
    this.audio.addEventListener("loadedmetadata", () => this.measured(this.audio.duration));
  }

  /** Takes `blob`; its waveform follows once it is known. */
  load(blob) {
    this.free();
    this.blob = blob;
    this.address = URL.createObjectURL(blob);
    this.audio.src = this.address;
    this.wave.set({ peaks: null, regions: [], curve: null, duration: 0, time: 0 });
    const loaded = blob;
    const known = new Promise((done) => {
      for (const name of ["loadedmetadata", "error"]) this.audio.addEventListener(name, done, { once: true });
    });
    known
      .then(() => filePeaks(blob, this.audio.duration))
      .then((found) => {
        if (!found || this.blob !== loaded) return;
        this.measured(found.duration);
        this.wave.set({ peaks: found.peaks });
      });
  }

  /** Lets go of the file. */
  free() {
    this.audio.pause();
    if (this.address) URL.revokeObjectURL(this.address);
    this.address = null;
  }

  get duration() {
    return this.wave.duration;
  }

  measured(seconds) {
    if (!Number.isFinite(seconds) || seconds <= 0) return;
    this.wave.set({ duration: seconds });
    this.whole.textContent = clock(seconds);
  }

  toggle() {
    if (this.audio.paused) this.audio.play().catch(() => {});
    else this.audio.pause();
  }

  seek(time) {
    this.audio.currentTime = time;
    this.show();
  }

  /** Plays from `time`. */
  playFrom(time) {
    this.seek(time);
    this.audio.play().catch(() => {});
  }

  changed() {
    const playing = !this.audio.paused && !this.audio.ended;
    this.button.replaceChildren(icon(playing ? "pause" : "play"));
    this.button.setAttribute("aria-label", playing ? "Pause" : "Play");
    this.show();
    if (playing) this.follow();
  }

  follow() {
    requestAnimationFrame(() => {
      this.show();
      if (!this.audio.paused) this.follow();
    });
  }

  show() {
    const time = this.audio.currentTime;
    this.now.textContent = clock(time);
    this.wave.set({ time });
    this.ontime?.(time);
  }
}
