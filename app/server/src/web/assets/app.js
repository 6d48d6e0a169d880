// Puts the page together: tabs, colours, key, status.

import { ActivityPanel } from "./activity.js";
import { apiKey, setApiKey } from "./api.js";
import { icon } from "./dom.js";
import { SeparatePanel } from "./separate.js";
import { SpeakPanel } from "./speak.js";
import { Status } from "./status.js";
import { TranscribePanel } from "./transcribe.js";

const find = (id) => document.getElementById(id);
const NAMES = ["transcribe", "speak", "separate", "activity"];
const PANELS = {
  transcribe: new TranscribePanel(find("panel-transcribe")),
  speak: new SpeakPanel(find("panel-speak")),
  separate: new SeparatePanel(find("panel-separate")),
  activity: new ActivityPanel(find("panel-activity")),
};
for (const name of NAMES) PANELS[name].root = find(`panel-${name}`);

function open(name, focus) {
  for (const one of NAMES) {
    const here = one === name;
    find(`panel-${one}`).hidden = !here;
    const tab = find(`tab-${one}`);
    tab.setAttribute("aria-selected", String(here));
    tab.tabIndex = here ? 0 : -1;
    if (here && focus) tab.focus();
  }
  if (name === "speak") PANELS.speak.modelChanged();
  if (location.hash !== `#${name}`) history.replaceState(null, "", `#${name}`);
}

for (const [at, name] of NAMES.entries()) {
  const tab = find(`tab-${name}`);
  tab.addEventListener("click", () => open(name, false));
  tab.addEventListener("keydown", (event) => {
    const last = NAMES.length - 1;
    const to = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    open(NAMES[to], true);
  });
}
const wanted = () => (NAMES.includes(location.hash.slice(1)) ? location.hash.slice(1) : NAMES[0]);
addEventListener("hashchange", () => open(wanted(), false));
open(wanted(), false);

// A file that misses a panel's place would replace the page.
for (const name of ["dragover", "drop"]) addEventListener(name, (event) => event.preventDefault());

const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
function showTheme() {
  find("theme-button").replaceChildren(icon(isDark() ? "sun" : "moon"));
  find("theme-button").setAttribute("aria-label", isDark() ? "Light colours" : "Dark colours");
  document.dispatchEvent(new Event("theme"));
}
find("theme-button").addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  try {
    localStorage.setItem("theme", root.dataset.theme);
  } catch {
    // It holds until the page is closed.
  }
  showTheme();
});
system.addEventListener("change", showTheme);
showTheme();

const dialog = find("key-dialog");
function showKey() {
  find("key-button").replaceChildren(icon("key"));
  find("key-button").classList.toggle("set", apiKey() !== "");
}
function askKey() {
  if (dialog.open) return;
  find("key-field").value = apiKey();
  dialog.returnValue = "cancel";
  dialog.showModal();
  find("key-field").focus();
}
let askedForKey = false;
const status = new Status(find("strip"), {
  onstatus: ({ models }) => {
    askedForKey = false;
    for (const panel of Object.values(PANELS)) panel.setModels(models);
  },
  onkey: () => {
    if (!askedForKey) askKey();
    askedForKey = true;
  },
});
find("key-button").addEventListener("click", askKey);
find("key-field").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  dialog.close("keep");
});
dialog.addEventListener("close", () => {
  if (dialog.returnValue === "keep") setApiKey(find("key-field").value.trim());
  if (dialog.returnValue === "forget") setApiKey("");
  showKey();
  status.poll();
});
showKey();
