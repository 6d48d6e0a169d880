// Transcripts as files.

function stamp(seconds, point) {
  const ms = Math.max(0, Math.round(seconds * 1000));
  const two = (value) => String(Math.floor(value)).padStart(2, "0");
  const [hours, minutes, rest] = [ms / 3_600_000, (ms / 60_000) % 60, (ms / 1000) % 60];
  return `${two(hours)}:${two(minutes)}:${two(rest)}${point}${String(ms % 1000).padStart(3, "0")}`;
}

/** SubRip. */
export function srt(segments) {
  return segments
    .map(({ start, end, text }, at) => `${at + 1}\n${stamp(start, ",")} --> ${stamp(end, ",")}\n${plain(text)}\n`)
    .join("\n");
}

/** WebVTT. */
export function vtt(segments) {
  const cues = segments.map(({ start, end, text }) => `${stamp(start, ".")} --> ${stamp(end, ".")}\n${escaped(plain(text))}\n`);
  return ["WEBVTT\n", ...cues].join("\n");
}

// An empty line or an arrow would end a cue or begin another.
function plain(text) {
  return text.trim().replace(/\s*\n\s*/g, " ").replaceAll("-->", "->");
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/**
 * The text in pieces: words with their times, and what lies between them. The words are looked for in
 * the text in order, so that languages without blanks stay as they are.
 */
export function pieces(text, words) {
  const found = [];
  let at = 0;
  for (const word of words) {
    const bare = word.word.trim();
    const place = bare ? text.indexOf(bare, at) : -1;
    if (place < 0) continue;
    if (place > at) found.push({ text: text.slice(at, place) });
    found.push({ text: bare, start: word.start, end: word.end });
    at = place + bare.length;
  }
  if (at < text.length) found.push({ text: text.slice(at) });
  return found;
}
