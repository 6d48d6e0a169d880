// Small helpers for building the page.

const SVG = "http://www.w3.org/2000/svg";

const ICONS = {
  mic: "M12 3a3 3 0 0 0-3 3v6a3 3 0 0 0 6 0V6a3 3 0 0 0-3-3M5.5 11.5a6.5 6.5 0 0 0 13 0M12 18v3",
  stop: "M7 7h10v10H7z",
  play: "M8 5.5v13l10.5-6.5z",
  pause: "M8.5 5.5v13M15.5 5.5v13",
  upload: "M12 16V4.5M7 9l5-5 5 5M4.5 16v3.5h15V16",
  download: "M12 4v11.5M7 11l5 5 5-5M4.5 19.5h15",
  copy: "M9 9h10.5v10.5H9zM5.5 15H4.5V4.5H15v1",
  check: "M5 12.5l4.5 4.5L19 7",
  close: "M6 6l12 12M18 6L6 18",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5",
  key: "M15 3.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M10.8 12.7L4 19.5V21h3v-2h2v-2.5h2.3M16 8h.01",
};

const SOLID = ["play", "stop"];

/** An icon that screen readers pass over; the control around it has the name. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  if (SOLID.includes(name)) svg.setAttribute("class", "solid");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/** An element with attributes (`on…` are listeners) and children; text is never taken for markup. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null));
  return element;
}

let count = 0;

/** A labelled control. */
export function field(text, control, note) {
  control.id ||= `field-${++count}`;
  return h("div", { class: "field" }, h("div", {}, h("label", { for: control.id }, text), note), control);
}

/** Replaces what a list offers, and keeps the choice if it is still there. */
export function fill(select, options) {
  const shown = JSON.stringify(options);
  // A list that is open would close if it were filled again.
  if (select.dataset.shown === shown) return;
  select.dataset.shown = shown;
  const before = select.value;
  select.replaceChildren(...options.map(([value, text]) => h("option", { value }, text)));
  if (options.some(([value]) => value === before)) select.value = before;
}

/** Hands `blob` to the user as a file. */
export function download(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** `1:05` or `1:02:05`. */
export function clock(seconds) {
  const whole = Math.floor(Number.isFinite(seconds) ? seconds : 0);
  const two = (value) => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

/** `12.3 s` or `2 min 5 s`. */
export function lasting(seconds) {
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** `1.4 MB`. */
export function size(bytes) {
  const units = ["bytes", "kB", "MB", "GB"];
  let at = 0;
  while (bytes >= 1000 && at < units.length - 1) {
    bytes /= 1000;
    at += 1;
  }
  return `${at ? bytes.toFixed(bytes < 10 ? 1 : 0) : bytes} ${units[at]}`;
}

/** A list of facts, each a name and a value. */
export function facts(rows) {
  const row = ([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
  return h("dl", { class: "facts" }, ...rows.map(row));
}

/** The name of `file` without its ending. */
export function stem(file) {
  return (file.name ?? "sound").replace(/\.[^.]*$/, "") || "sound";
}

/** The name of a language in English, or its code. */
export function languageName(code) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}
