// Recording from the microphone: 16-bit samples as the browser gives them, and how loud they are.

import { wavFile } from "./pcm.js";

/** Records until `stop`; `onblock` is told the loudest sample of every block, 0 to 1. */
export class Recorder {
  constructor(onblock) {
    this.onblock = onblock;
    this.blocks = [];
    this.seconds = 0;
  }

  async start() {
    if (!navigator.mediaDevices?.getUserMedia) {
      throw new Error("Browsers give the microphone only to pages on https or localhost.");
    }
    try {
      this.stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } });
    } catch (error) {
      if (error.name === "NotFoundError") throw new Error("No microphone was found.");
      if (error.name === "NotAllowedError") throw new Error("The microphone was not allowed for this page.");
      throw new Error(`The microphone cannot be used: ${error.message}`);
    }
    this.context = new AudioContext();
    await this.context.audioWorklet.addModule(new URL("./tap.js", import.meta.url));
    this.tap = new AudioWorkletNode(this.context, "tap", { numberOfOutputs: 0 });
    this.tap.port.onmessage = ({ data }) => {
      this.blocks.push(data.samples);
      this.seconds += data.samples.length / this.context.sampleRate;
      this.onblock(data.peak, this.seconds);
    };
    this.context.createMediaStreamSource(this.stream).connect(this.tap);
    await this.context.resume();
  }

  /** Ends the recording and gives it back as a WAV file. */
  async stop() {
    for (const track of this.stream.getTracks()) track.stop();
    const rate = this.context.sampleRate;
    await this.context.close();
    const name = `recording ${new Date().toISOString().slice(0, 19).replaceAll(":", "-")}.wav`;
    return new File([wavFile(this.blocks, rate, 1)], name, { type: "audio/wav" });
  }
}
