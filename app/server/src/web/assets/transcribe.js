// The panel that turns speech into text.

import { events, send } from "./api.js";
import { download, facts, field, fill, h, icon, languageName, lasting, stem } from "./dom.js";
import { curlView, missing, problems, progress } from "./feedback.js";
import { Source } from "./source.js";
import { pieces, srt, vtt } from "./subtitles.js";

const FORMATS = {
  txt: ["text/plain", (result) => `${result.text}\n`],
  srt: ["application/x-subrip", (result) => srt(result.segments)],
  vtt: ["text/vtt", (result) => vtt(result.segments)],
  json: ["application/json", (result) => `${JSON.stringify(result, null, 2)}\n`],
};

export class TranscribePanel {
  constructor(root) {
    this.problems = problems();
    this.progress = progress();
    this.curl = curlView();
    this.source = new Source({
      onfile: (file) => this.fileChanged(file),
      onproblem: (error) => this.problems.show(error),
    });
    this.source.player.ontime = (time) => this.follow(time);
    this.model = h("select", { onchange: () => this.modelChanged() });
    this.language = h("select");
    this.hint = h("input", { type: "text", placeholder: "Names and words to spell right", autocomplete: "off" });
    this.start = h("button", { class: "primary", disabled: true, onclick: () => this.run() }, "Transcribe");
    this.cancel = h("button", { class: "quiet", hidden: true, onclick: () => this.abort?.abort() }, "Cancel");
    this.text = h("div", { class: "text", role: "group", "aria-label": "Transcript", "aria-live": "polite" });
    this.facts = h("div");
    this.notes = h("div");
    this.files = h("div", { class: "row", role: "group", "aria-label": "Download the transcript" });
    for (const name of Object.keys(FORMATS)) {
      this.files.append(h("button", { class: "chip", onclick: () => this.save(name) }, icon("download"), name));
    }
    this.result = h("div", { class: "card stack", hidden: true }, this.text, this.facts, this.notes, this.files);
    this.none = missing("transcription", ["whisper-base", "whisper-tiny.en"]);
    this.none.hidden = true;
    this.card = h(
      "div",
      { class: "card stack" },
      this.source.element,
      h("div", { class: "fields" }, field("Model", this.model), field("Language", this.language), field("Hint (optional)", this.hint)),
      h("div", { class: "row" }, this.start, this.cancel),
      this.progress.element,
      this.problems.element,
      this.curl.element,
    );
    root.append(
      h("h1", {}, "Speech to text"),
      h("p", { class: "lead" }, "Record yourself or bring a recording. Nothing leaves your server."),
      this.none,
      this.card,
      this.result,
    );
    this.listenToWords();
  }

  /** Takes the models of the server. */
  setModels(all) {
    this.models = all.filter((model) => model.task === "asr");
    this.none.hidden = this.models.length > 0;
    this.card.hidden = !this.none.hidden;
    fill(this.model, this.models.map((model) => [model.id, model.id]));
    this.modelChanged();
  }

  modelChanged() {
    const model = this.models.find((one) => one.id === this.model.value);
    const codes = model?.info?.languages ?? [];
    const named = codes.map((code) => [code, languageName(code)]).sort((a, b) => a[1].localeCompare(b[1]));
    if (this.shown === named.join()) return;
    this.shown = named.join();
    fill(this.language, codes.length === 1 ? named : [["", "Detect"], ...named]);
  }

  fileChanged(file) {
    this.abort?.abort();
    this.problems.clear();
    this.start.disabled = !file;
    this.result.hidden = true;
    if (file) this.start.focus();
  }

  request() {
    const form = [
      ["file", this.source.file],
      ["model", this.model.value],
      ["response_format", "verbose_json"],
      ["timestamp_granularities[]", "word"],
      ["timestamp_granularities[]", "segment"],
      ["stream", "true"],
    ];
    if (this.language.value) form.push(["language", this.language.value]);
    if (this.hint.value.trim()) form.push(["prompt", this.hint.value.trim()]);
    return { method: "POST", path: "v1/audio/transcriptions", form };
  }

  async run() {
    const request = this.request();
    const abort = new AbortController();
    this.abort = abort;
    this.busy(true);
    this.curl.show(request);
    const started = performance.now();
    try {
      const response = await send(request, abort.signal);
      for await (const event of events(response)) {
        if (event.type === "transcript.text.delta") this.add(event);
        if (event.type === "transcript.text.done") this.finish(event, (performance.now() - started) / 1000);
      }
    } catch (error) {
      this.problems.show(error);
    }
    if (this.abort === abort) this.busy(false);
  }

  busy(is) {
    this.start.disabled = is || !this.source.file;
    this.cancel.hidden = !is;
    if (!is) {
      this.progress.stop();
      return;
    }
    this.progress.start("Listening");
    this.problems.clear();
    this.done = null;
    this.now = null;
    this.words = [];
    this.text.replaceChildren();
    this.facts.replaceChildren();
    this.notes.replaceChildren();
    this.files.hidden = true;
    this.result.hidden = true;
  }

  add(event) {
    this.result.hidden = false;
    const timed = event.start !== undefined;
    this.text.append(timed ? this.word({ text: event.delta, start: event.start, end: event.end }) : event.delta);
  }

  word({ text, start, end }) {
    const word = h("span", { class: "word", role: "button", tabindex: "-1" }, text);
    Object.assign(word, { start, end });
    return word;
  }

  finish(event, seconds) {
    const { type, usage, ...result } = event;
    result.segments ??= [{ start: 0, end: result.duration ?? 0, text: result.text }];
    this.done = result;
    const parts = pieces(result.text, result.words ?? result.segments.map((one) => ({ ...one, word: one.text })));
    this.text.replaceChildren(...parts.map((part) => (part.start === undefined ? part.text : this.word(part))));
    this.words = [...this.text.querySelectorAll(".word")];
    this.words[0]?.setAttribute("tabindex", "0");
    if (!result.text) this.text.append(h("span", { class: "muted" }, "No speech was found."));
    const rows = [["Time", lasting(seconds)]];
    if (result.duration) {
      rows.unshift(["Sound", lasting(result.duration)]);
      rows.push(["Speed", `${(result.duration / seconds).toFixed(1)}× real time`]);
    }
    if (result.language) rows.push(["Language", languageName(result.language)]);
    this.facts.replaceChildren(facts(rows));
    this.notes.replaceChildren(...(result.warnings ?? []).map((text) => h("p", { class: "note" }, text)));
    this.files.hidden = false;
    this.result.hidden = false;
  }

  save(name) {
    const [type, write] = FORMATS[name];
    download(new Blob([write(this.done)], { type }), `${stem(this.source.file)}.${name}`);
  }

  listenToWords() {
    const play = (word) => this.source.player.playFrom(word.start + 0.001);
    this.text.addEventListener("click", (event) => {
      const word = event.target.closest(".word");
      if (word && getSelection().isCollapsed) play(word);
    });
    this.text.addEventListener("keydown", (event) => {
      const at = this.words?.indexOf(event.target) ?? -1;
      if (at < 0) return;
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Enter" || event.key === " ") play(event.target);
      else if (step && this.words[at + step]) {
        event.target.setAttribute("tabindex", "-1");
        this.words[at + step].setAttribute("tabindex", "0");
        this.words[at + step].focus();
      } else return;
      event.preventDefault();
    });
  }

  /** Marks the word that is heard. */
  follow(time) {
    const heard = (word) => word.start <= time && time < word.end;
    if (this.now && heard(this.now)) return;
    this.now?.classList.remove("now");
    this.now = this.words?.find(heard);
    this.now?.classList.add("now");
  }
}
