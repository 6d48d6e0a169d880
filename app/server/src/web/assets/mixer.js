// Plays several files in step, each with its own volume.

export class Mixer {
  constructor() {
    this.context = new AudioContext();
    this.tracks = [];
    this.offset = 0;
    this.playing = false;
    /** Called with the time while it plays. */
    this.ontime = null;
    /** Called when it begins or ends to play. */
    this.onchange = null;
  }

  /** Adds the file `blob`; gives back its sound. */
  async add(blob) {
    const buffer = await this.context.decodeAudioData(await blob.arrayBuffer());
    const gain = this.context.createGain();
    gain.connect(this.context.destination);
    this.tracks.push({ buffer, gain, volume: 1, solo: false, mute: false, source: null });
    return buffer;
  }

  get duration() {
    return Math.max(0, ...this.tracks.map((track) => track.buffer.duration));
  }

  get time() {
    if (!this.playing) return this.offset;
    return Math.min(this.duration, this.offset + this.context.currentTime - this.began);
  }

  /** Whether track `at` is heard. */
  heard(at) {
    const track = this.tracks[at];
    const solo = this.tracks.some((one) => one.solo);
    return !track.mute && (!solo || track.solo);
  }

  /** Changes volume, solo or mute of track `at`. */
  set(at, changes) {
    Object.assign(this.tracks[at], changes);
    this.tracks.forEach((track, i) => {
      const level = this.heard(i) ? track.volume : 0;
      track.gain.gain.setTargetAtTime(level, this.context.currentTime, 0.015);
    });
  }

  async play() {
    await this.context.resume();
    if (this.offset >= this.duration - 0.01) this.offset = 0;
    // One start time for all keeps them in step to the sample.
    const start = this.context.currentTime + 0.05;
    for (const track of this.tracks) {
      track.source = this.context.createBufferSource();
      track.source.buffer = track.buffer;
      track.source.connect(track.gain);
      track.source.start(start, this.offset);
    }
    this.began = start;
    this.playing = true;
    this.onchange?.();
    this.follow();
  }

  pause() {
    this.offset = Math.max(0, this.time);
    this.playing = false;
    for (const track of this.tracks) {
      track.source?.stop();
      track.source = null;
    }
    this.onchange?.();
  }

  seek(time) {
    const was = this.playing;
    if (was) this.pause();
    this.offset = time;
    this.ontime?.(time);
    if (was) this.play();
  }

  follow() {
    if (!this.playing) return;
    this.ontime?.(this.time);
    if (this.time >= this.duration) {
      this.pause();
      return;
    }
    requestAnimationFrame(() => this.follow());
  }

  close() {
    if (this.playing) this.pause();
    if (this.context.state !== "closed") this.context.close();
  }
}
