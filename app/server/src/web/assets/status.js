// The strip at the foot of the page: what the server is doing.

import { send } from "./api.js";
import { h, size } from "./dom.js";

const EVERY = 3000;

const STATES = {
  unloaded: "not loaded",
  loading: "loading",
  ready: "ready",
  busy: "busy",
  failed: "failed",
};

/** Asks for the state of the server again and again; `onstatus` is told it, `onkey` that a key is wanted. */
export class Status {
  constructor(element, { onstatus, onkey }) {
    Object.assign(this, { element, onstatus, onkey });
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.poll();
    });
    this.poll();
  }

  async poll() {
    clearTimeout(this.timer);
    try {
      const status = await (await send({ path: "v1/status" })).json();
      this.show(status);
      this.onstatus(status);
    } catch (error) {
      this.element.replaceChildren(h("span", { class: "dot lost" }), h("span", { role: "alert" }, error.message));
      if (error.status === 401) this.onkey();
    }
    clearTimeout(this.timer);
    if (!document.hidden) this.timer = setTimeout(() => this.poll(), EVERY);
  }

  show(status) {
    const memory = (status.server_memory_bytes ?? 0) + (status.model_memory_bytes ?? 0);
    const fact = (name, value) => h("span", {}, `${name} `, h("b", {}, value));
    const jobs = status.running + status.queued;
    this.element.replaceChildren(
      fact("Device", status.device),
      fact("Memory", size(memory)),
      fact("Queue", jobs ? `${status.running} running, ${status.queued} waiting` : "empty"),
      h("ul", { "aria-label": "Models" }, ...status.models.map((model) => this.model(model))),
      fact("Version", status.version),
    );
  }

  model(model) {
    const state = STATES[model.state] ?? model.state;
    const waiting = model.queued ? `, ${model.queued} waiting` : "";
    const memory = model.memory_bytes ? `, ${size(model.memory_bytes)}` : "";
    const title = [state + waiting + memory, model.note].filter(Boolean).join("\n");
    return h("li", { title }, h("span", { class: `dot ${model.state}` }), h("b", {}, model.id), state + waiting);
  }
}
