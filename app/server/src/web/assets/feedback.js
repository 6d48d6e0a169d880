// What panels say around a request: that it runs, what went wrong, and how to make it by hand.

import { h, icon } from "./dom.js";
import { curl } from "./api.js";

/** A line that shows that something runs, with a text that can change. */
export function progress() {
  const text = h("span", { class: "small muted number" });
  const element = h("div", { class: "stack", hidden: true }, h("div", { class: "bar" }, h("i")), text);
  let timer;
  return {
    element,
    start(words) {
      const started = performance.now();
      const tick = () => {
        text.textContent = `${words} ${((performance.now() - started) / 1000).toFixed(1)} s`;
      };
      clearInterval(timer);
      tick();
      timer = setInterval(tick, 100);
      element.hidden = false;
    },
    stop() {
      clearInterval(timer);
      element.hidden = true;
    },
  };
}

/** A place for one problem; screen readers hear it at once. */
export function problems() {
  const element = h("div", { role: "alert" });
  return {
    element,
    clear: () => element.replaceChildren(),
    show(error) {
      if (error.name === "AbortError") return;
      const id = error.requestId ? h("p", { class: "small" }, `Request id ${error.requestId}`) : null;
      element.replaceChildren(h("div", { class: "problem" }, h("p", {}, error.message), id));
    },
  };
}

/** Shows a request as a curl command, ready to be copied. */
export function curlView() {
  const code = h("pre", { tabindex: "0", "aria-label": "curl command" });
  const copy = h("button", { class: "icon", "aria-label": "Copy the command", title: "Copy" }, icon("copy"));
  const element = h(
    "details",
    { class: "curl", hidden: true },
    h("summary", {}, "Show the curl"),
    h("div", { class: "code" }, code, copy),
  );
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      getSelection().selectAllChildren(code);
      return;
    }
    copy.replaceChildren(icon("check"));
    setTimeout(() => copy.replaceChildren(icon("copy")), 1500);
  });
  return {
    element,
    show(request, output) {
      code.textContent = curl(request, output);
      element.hidden = false;
    },
  };
}

/** What stands in a panel whose task has no model. */
export function missing(task, models) {
  const commands = models.map((model) => `audiocpp_cli models pull ${model}`).join("\n");
  return h(
    "div",
    { class: "card stack" },
    h("h2", {}, `There is no model for ${task} yet`),
    h("p", { class: "muted small" }, "Get one on the machine of the server, then start the server again:"),
    h("div", { class: "code" }, h("pre", {}, commands)),
  );
}
