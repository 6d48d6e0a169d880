// Raw samples: playing them as they arrive, and making a WAV file of them.

/** The bytes of a WAV file of 16-bit `blocks`. */
export function wavFile(blocks, rate, channels) {
  const bytes = blocks.reduce((sum, block) => sum + block.byteLength, 0);
  const head = new DataView(new ArrayBuffer(44));
  const text = (at, word) => [...word].forEach((c, i) => head.setUint8(at + i, c.charCodeAt(0)));
  text(0, "RIFF");
  head.setUint32(4, 36 + bytes, true);
  text(8, "WAVEfmt ");
  head.setUint32(16, 16, true);
  head.setUint16(20, 1, true);
  head.setUint16(22, channels, true);
  head.setUint32(24, rate, true);
  head.setUint32(28, rate * channels * 2, true);
  head.setUint16(32, channels * 2, true);
  head.setUint16(34, 16, true);
  text(36, "data");
  head.setUint32(40, bytes, true);
  return new Blob([head, ...blocks], { type: "audio/wav" });
}

/** Samples that share a place of the waveform. */
const STRETCH = 480;

/** Plays mono 16-bit samples without gaps while they arrive. */
export class PcmPlayer {
  constructor(rate) {
    this.rate = rate;
    this.context = new AudioContext();
    this.blocks = [];
    this.samples = 0;
    /** The loudest sample of every stretch of `STRETCH` samples. */
    this.peaks = [];
    this.odd = null;
    this.next = 0;
    this.sources = new Set();
  }

  /** Seconds of sound that arrived. */
  get duration() {
    return this.samples / this.rate;
  }

  /** Seconds that were heard. */
  get heard() {
    if (this.began === undefined) return 0;
    return Math.max(0, Math.min(this.duration, this.context.currentTime - this.began));
  }

  /** Takes bytes as they come; a sample may be cut between two calls. */
  push(bytes) {
    if (this.odd) {
      const joined = new Uint8Array(this.odd.length + bytes.length);
      joined.set(this.odd);
      joined.set(bytes, this.odd.length);
      bytes = joined;
    }
    const whole = bytes.length - (bytes.length % 2);
    this.odd = whole < bytes.length ? bytes.slice(whole) : null;
    if (!whole) return;
    const block = new Int16Array(bytes.slice(0, whole).buffer);
    this.blocks.push(block);
    for (const value of block) {
      const at = Math.floor(this.samples / STRETCH);
      this.peaks[at] = Math.max(this.peaks[at] ?? 0, Math.abs(value) / 32768);
      this.samples += 1;
    }
    this.play(block);
  }

  play(block) {
    const { context, rate } = this;
    const buffer = context.createBuffer(1, block.length, rate);
    const channel = buffer.getChannelData(0);
    for (let i = 0; i < block.length; i += 1) channel[i] = block[i] / 32768;
    const source = context.createBufferSource();
    source.buffer = buffer;
    source.connect(context.destination);
    const now = context.currentTime;
    // A little ahead, so that the first block is not cut; again after every gap in the stream.
    if (this.next < now + 0.02) {
      const late = now + 0.08 - this.next;
      this.began = this.began === undefined ? now + 0.08 : this.began + late;
      this.next = now + 0.08;
    }
    source.start(this.next);
    this.next += buffer.duration;
    this.sources.add(source);
    source.onended = () => this.sources.delete(source);
  }

  /** Whether there is sound that was not heard yet. */
  get playing() {
    return this.sources.size > 0;
  }

  /** Falls silent; what arrived is kept. */
  stop() {
    for (const source of this.sources) source.stop();
    this.sources.clear();
  }

  /** What arrived as a file. */
  file() {
    return wavFile(this.blocks, this.rate, 1);
  }

  /** Lets go of the sound card. */
  close() {
    this.stop();
    if (this.context.state !== "closed") this.context.close();
  }
}
