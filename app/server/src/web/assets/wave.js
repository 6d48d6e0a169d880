// Waveforms: drawing one, and making one from a file.

import { clock } from "./dom.js";

/** Files that take more seconds than this to play are not unpacked in the browser. */
const LONGEST = 20 * 60;
/** Files of more bytes than this neither. */
const LARGEST = 200e6;
/** Places of a waveform. */
const PLACES = 1200;

/** The loudest sample of each of `places` equal parts of mono `samples`. */
export function peaksOf(samples, places = PLACES) {
  const count = Math.max(1, Math.min(places, samples.length));
  const peaks = new Float32Array(count);
  const step = samples.length / count;
  for (let at = 0; at < count; at += 1) {
    let most = 0;
    const end = Math.floor((at + 1) * step);
    for (let i = Math.floor(at * step); i < end; i += 1) most = Math.max(most, Math.abs(samples[i]));
    peaks[at] = most;
  }
  return peaks;
}

/** The peaks of a file, or nothing if the browser cannot read it or it is very long. */
export async function filePeaks(blob, seconds) {
  if (blob.size > LARGEST || seconds > LONGEST) return null;
  try {
    const reader = new OfflineAudioContext(1, 1, 22_050);
    const sound = await reader.decodeAudioData(await blob.arrayBuffer());
    return { peaks: peaksOf(sound.getChannelData(0)), duration: sound.duration };
  } catch {
    return null;
  }
}

/** A canvas with a waveform, marked stretches, a curve, and a place that can be moved. */
export class Waveform {
  constructor({ size = "", label = "Position" } = {}) {
    this.canvas = document.createElement("canvas");
    this.canvas.className = `wave ${size}`;
    Object.assign(this, { peaks: null, regions: [], curve: null, duration: 0, time: 0, onseek: null });
    const slider = { role: "slider", tabindex: "0", "aria-label": label, "aria-valuemin": "0" };
    for (const [name, value] of Object.entries(slider)) this.canvas.setAttribute(name, value);
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    document.addEventListener("theme", () => this.draw());
  }

  listen() {
    const { canvas } = this;
    const seek = (event) => {
      const box = canvas.getBoundingClientRect();
      this.seek(((event.clientX - box.left) / box.width) * this.duration);
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      seek(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (canvas.hasPointerCapture(event.pointerId)) seek(event);
    });
    canvas.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: 5, ArrowUp: 5, ArrowLeft: -5, ArrowDown: -5, PageUp: 30, PageDown: -30 };
      if (event.key in steps) this.seek(this.time + steps[event.key]);
      else if (event.key === "Home") this.seek(0);
      else if (event.key === "End") this.seek(this.duration);
      else return;
      event.preventDefault();
    });
  }

  seek(time) {
    if (!this.onseek || !this.duration) return;
    this.onseek(Math.min(this.duration, Math.max(0, time)));
  }

  /** Changes what is shown. */
  set(changes) {
    Object.assign(this, changes);
    this.canvas.setAttribute("aria-valuemax", this.duration.toFixed(1));
    this.canvas.setAttribute("aria-valuenow", this.time.toFixed(1));
    this.canvas.setAttribute("aria-valuetext", `${clock(this.time)} of ${clock(this.duration)}`);
    this.draw();
  }

  draw() {
    const { canvas } = this;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width || !height) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement);
    const known = {};
    const colour = (name) => (known[name] ??= style.getPropertyValue(name).trim());
    const place = (time) => (this.duration ? (time / this.duration) * width : 0);
    pen.fillStyle = colour("--accent-soft");
    for (const { start, end } of this.regions) {
      pen.fillRect(place(start), 0, Math.max(1, place(end) - place(start)), height);
    }
    const played = place(this.time);
    // Where stretches are marked, they stand out; else what was played does.
    const marked = (x) => this.regions.some(({ start, end }) => place(start) <= x && x < place(end));
    const strong = this.regions.length ? marked : (x) => x < played;
    this.bars(pen, width, height, (x) => (strong(x) ? colour("--accent") : colour("--wave")));
    if (this.curve?.length) this.line(pen, width, height, colour("--soft"));
    if (this.duration && this.time > 0) {
      pen.fillStyle = colour("--ink");
      pen.fillRect(Math.min(width - 1.5, played), 0, 1.5, height);
    }
  }

  bars(pen, width, height, colourAt) {
    const count = Math.floor(width / 3);
    const { peaks } = this;
    for (let at = 0; at < count; at += 1) {
      let peak = 0;
      if (peaks?.length) {
        const from = Math.floor((at / count) * peaks.length);
        const to = Math.max(from + 1, Math.floor(((at + 1) / count) * peaks.length));
        for (let i = from; i < to; i += 1) peak = Math.max(peak, peaks[i] ?? 0);
      }
      const tall = Math.max(2, Math.min(1, peak) ** 0.7 * (height - 6));
      pen.fillStyle = colourAt(at * 3);
      pen.fillRect(at * 3, (height - tall) / 2, 2, tall);
    }
  }

  line(pen, width, height, colour) {
    pen.strokeStyle = colour;
    pen.lineWidth = 1.5;
    pen.beginPath();
    const { curve } = this;
    const step = Math.max(1, Math.floor(curve.length / width));
    for (let at = 0; at < curve.length; at += step) {
      const x = (at / curve.length) * width;
      pen.lineTo(x, height - 2 - curve[at] * (height - 4));
    }
    pen.stroke();
  }
}
