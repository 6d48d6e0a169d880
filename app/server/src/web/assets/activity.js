// The panel that shows where there is speech.

import { send } from "./api.js";
import { clock, download, facts, field, fill, h, icon, lasting, stem } from "./dom.js";
import { curlView, missing, problems, progress } from "./feedback.js";
import { Source } from "./source.js";

export class ActivityPanel {
  constructor(root) {
    this.problems = problems();
    this.progress = progress();
    this.curl = curlView();
    this.source = new Source({
      size: "tall",
      onfile: (file) => this.fileChanged(file),
      onproblem: (error) => this.problems.show(error),
    });
    this.model = h("select");
    this.threshold = h("input", { type: "range", min: "0.05", max: "0.95", step: "0.05", value: "0.5" });
    this.thresholdText = h("output", { class: "small muted number" }, "0.50");
    this.threshold.addEventListener("input", () => { this.thresholdText.textContent = Number(this.threshold.value).toFixed(2); });
    this.start = h("button", { class: "primary", disabled: true, onclick: () => this.run() }, "Find speech");
    this.list = h("ul", { class: "stretches", "aria-label": "Stretches of speech" });
    this.facts = h("div", { role: "status" });
    this.save = h("button", { class: "chip", onclick: () => this.download() }, icon("download"), "json");
    this.result = h("div", { class: "card stack", hidden: true }, this.facts, this.list, h("div", { class: "row" }, this.save));
    this.none = missing("voice activity", ["silero-vad"]);
    this.none.hidden = true;
    this.card = h(
      "div",
      { class: "card stack" },
      this.source.element,
      h("div", { class: "fields" }, field("Model", this.model), field("Threshold", this.threshold, this.thresholdText)),
      h("div", { class: "row" }, this.start),
      this.progress.element,
      this.problems.element,
      this.curl.element,
    );
    root.append(
      h("h1", {}, "Voice activity"),
      h("p", { class: "lead" }, "Where somebody speaks: marked stretches, and the probability as a line."),
      this.none,
      this.card,
      this.result,
    );
  }

  /** Takes the models of the server. */
  setModels(all) {
    const models = all.filter((model) => model.task === "vad");
    this.none.hidden = models.length > 0;
    this.card.hidden = !this.none.hidden;
    fill(this.model, models.map((model) => [model.id, model.id]));
  }

  fileChanged(file) {
    this.problems.clear();
    this.start.disabled = !file;
    this.result.hidden = true;
    if (file) this.start.focus();
  }

  async run() {
    const { file } = this.source;
    const request = {
      method: "POST",
      path: "v1/audio/vad",
      form: [["file", file], ["model", this.model.value], ["threshold", this.threshold.value], ["probabilities", "true"]],
    };
    this.curl.show(request);
    this.problems.clear();
    this.start.disabled = true;
    this.progress.start("Looking for speech");
    try {
      const activity = await (await send(request)).json();
      if (this.source.file === file) this.show(activity);
    } catch (error) {
      this.problems.show(error);
    }
    this.progress.stop();
    this.start.disabled = !this.source.file;
  }

  show(activity) {
    this.activity = activity;
    const { player } = this.source;
    const { segments, duration } = activity;
    player.wave.set({ duration: player.duration || duration, regions: segments, curve: activity.probabilities ?? null });
    const speech = segments.reduce((sum, { start, end }) => sum + end - start, 0);
    const share = duration ? Math.round((speech / duration) * 100) : 0;
    this.facts.replaceChildren(facts([
      ["Stretches", String(segments.length)],
      ["Speech", `${lasting(speech)} (${share} %)`],
      ["Recording", lasting(duration)],
    ]));
    const item = ({ start, end }) => {
      const words = `${clock(start)} to ${clock(end)}`;
      const button = h("button", { class: "chip number", "aria-label": `Play ${words}` }, `${start.toFixed(2)} to ${end.toFixed(2)} s`);
      button.addEventListener("click", () => player.playFrom(start));
      return h("li", {}, button);
    };
    this.list.replaceChildren(...segments.map(item));
    this.result.hidden = false;
  }

  download() {
    const text = `${JSON.stringify(this.activity, null, 2)}\n`;
    download(new Blob([text], { type: "application/json" }), `${stem(this.source.file)} speech.json`);
  }
}
