// Runs beside the sound: passes blocks of samples on to the recorder.

const BLOCK = 2048;

class Tap extends AudioWorkletProcessor {
  constructor() {
    super();
    this.begin();
  }

  begin() {
    this.samples = new Int16Array(BLOCK);
    this.count = 0;
    this.peak = 0;
  }

  process([[input]]) {
    for (const sample of input ?? []) {
      this.peak = Math.max(this.peak, Math.abs(sample));
      this.samples[this.count] = Math.max(-32768, Math.min(32767, Math.round(sample * 32768)));
      this.count += 1;
      if (this.count === BLOCK) {
        this.port.postMessage({ samples: this.samples, peak: this.peak }, [this.samples.buffer]);
        this.begin();
      }
    }
    return true;
  }
}

registerProcessor("tap", Tap);
