// The panel that takes a song apart.

import { send } from "./api.js";
import { clock, download, facts, field, fill, h, icon, lasting, size, stem } from "./dom.js";
import { curlView, missing, problems, progress } from "./feedback.js";
import { Mixer } from "./mixer.js";
import { Source } from "./source.js";
import { Waveform, peaksOf } from "./wave.js";
import { filesOf } from "./zip.js";

export class SeparatePanel {
  constructor(root) {
    this.problems = problems();
    this.progress = progress();
    this.curl = curlView();
    this.source = new Source({
      microphone: false,
      what: "a song",
      onfile: (file) => this.fileChanged(file),
      onproblem: (error) => this.problems.show(error),
    });
    this.model = h("select");
    this.start = h("button", { class: "primary", disabled: true, onclick: () => this.run() }, "Separate");
    this.cancel = h("button", { class: "quiet", hidden: true, onclick: () => this.abort?.abort() }, "Cancel");
    this.result = h("div", { class: "card", hidden: true, "aria-label": "Stems", role: "group" });
    this.none = missing("separation", ["spleeter-2stems"]);
    this.none.hidden = true;
    this.card = h(
      "div",
      { class: "card stack" },
      this.source.element,
      h("div", { class: "fields" }, field("Model", this.model)),
      h("div", { class: "row" }, this.start, this.cancel),
      this.progress.element,
      this.problems.element,
      this.curl.element,
    );
    root.append(
      h("h1", {}, "Separate a song"),
      h("p", { class: "lead" }, "Vocals, drums and the rest as tracks of their own, played in step."),
      this.none,
      this.card,
      this.result,
    );
  }

  /** Takes the models of the server. */
  setModels(all) {
    const models = all.filter((model) => model.task === "sep");
    this.none.hidden = models.length > 0;
    this.card.hidden = !this.none.hidden;
    fill(this.model, models.map((model) => [model.id, model.id]));
  }

  fileChanged(file) {
    this.abort?.abort();
    this.problems.clear();
    this.start.disabled = !file;
    this.clearResult();
    if (file) this.start.focus();
  }

  clearResult() {
    this.mixer?.close();
    this.mixer = null;
    this.result.hidden = true;
  }

  async run() {
    const request = {
      method: "POST",
      path: "v1/audio/separations",
      form: [["file", this.source.file], ["model", this.model.value], ["package", "zip"]],
    };
    const abort = new AbortController();
    this.abort = abort;
    this.curl.show(request, "stems.zip");
    this.problems.clear();
    this.clearResult();
    this.source.player.audio.pause();
    this.start.disabled = true;
    this.cancel.hidden = false;
    this.progress.start("Separating");
    const started = performance.now();
    try {
      const archive = await (await send(request, abort.signal)).blob();
      const spent = (performance.now() - started) / 1000;
      await this.show(archive, spent);
    } catch (error) {
      this.problems.show(error);
    }
    if (this.abort !== abort) return;
    this.progress.stop();
    this.cancel.hidden = true;
    this.start.disabled = !this.source.file;
  }

  async show(archive, spent) {
    const files = await filesOf(archive);
    const mixer = new Mixer();
    this.mixer = mixer;
    const song = stem(this.source.file);
    const rows = [];
    for (const file of files) {
      const buffer = await mixer.add(file.blob);
      rows.push(this.track(mixer, rows.length, file, buffer, song));
    }
    const play = h("button", { class: "primary round", "aria-label": "Play all", onclick: () => (mixer.playing ? mixer.pause() : mixer.play()) }, icon("play"));
    const now = h("span", { class: "number" }, "0:00");
    mixer.ontime = (time) => {
      now.textContent = clock(time);
      for (const row of rows) row.wave.set({ time });
    };
    mixer.onchange = () => {
      play.replaceChildren(icon(mixer.playing ? "pause" : "play"));
      play.setAttribute("aria-label", mixer.playing ? "Pause all" : "Play all");
    };
    const about = facts([
      ["Song", lasting(mixer.duration)],
      ["Time", lasting(spent)],
      ["Speed", `${(mixer.duration / spent).toFixed(1)}× real time`],
    ]);
    const all = h("button", { class: "chip", onclick: () => download(archive, `${song} stems.zip`) }, icon("download"), `All, ${size(archive.size)}`);
    this.result.replaceChildren(
      h("div", { class: "row" }, play, h("span", { class: "muted" }, now, ` / ${clock(mixer.duration)}`), h("span", { class: "grow" }), all),
      h("div", { class: "stack" }, h("div", { class: "tracks" }, ...rows.map((row) => row.element)), about),
    );
    this.result.hidden = false;
    for (const row of rows) row.wave.draw();
  }

  track(mixer, at, file, buffer, song) {
    const name = file.name.replace(/\.[^.]*$/, "");
    const wave = new Waveform({ size: "low", label: `Position in ${name}` });
    wave.set({ peaks: peaksOf(buffer.getChannelData(0)), duration: buffer.duration });
    wave.onseek = (time) => mixer.seek(time);
    const element = h("div", { class: "track", role: "group", "aria-label": name });
    const toggle = (letter, word, key) => {
      const button = h("button", { class: "toggle", "aria-pressed": "false", "aria-label": `${word} ${name}`, title: word }, letter);
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(on));
        mixer.set(at, { [key]: on });
        for (const [i, other] of [...element.parentElement.children].entries()) other.classList.toggle("silent", !mixer.heard(i));
      });
      return button;
    };
    const volume = h("input", { type: "range", class: "volume", min: "0", max: "1.5", step: "0.01", value: "1", "aria-label": `Volume of ${name}` });
    volume.addEventListener("input", () => mixer.set(at, { volume: Number(volume.value) }));
    const save = h("button", { class: "icon", "aria-label": `Download ${name}`, title: "Download", onclick: () => download(file.blob, `${song} ${file.name}`) }, icon("download"));
    element.append(
      h("span", { class: "name" }, name),
      h("span", { class: "row" }, toggle("S", "Solo", "solo"), toggle("M", "Mute", "mute")),
      wave.canvas,
      volume,
      save,
    );
    return { element, wave };
  }
}
