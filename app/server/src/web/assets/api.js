// Requests to the server: one description of a request is both sent and shown as a curl command.

const KEY = "api-key";

/** The key of this tab, or nothing. */
export function apiKey() {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

/** Keeps or forgets the key. */
export function setApiKey(key) {
  try {
    if (key) sessionStorage.setItem(KEY, key);
    else sessionStorage.removeItem(KEY);
  } catch {
    // A tab that keeps nothing asks again.
  }
}

/** What went wrong, in words for people. */
export class Problem extends Error {
  constructor(message, { status = 0, requestId = "" } = {}) {
    super(message);
    this.status = status;
    this.requestId = requestId;
  }
}

/** The address of `path` on this server, also behind a proxy that adds a prefix. */
export function address(path) {
  return new URL(path, document.baseURI).href;
}

/**
 * Sends `{method, path, json}` or `{method, path, form: [[name, value], …]}` and gives back the
 * response if it is a success; throws a `Problem` otherwise.
 */
export async function send(request, signal) {
  const headers = {};
  if (request.accept) headers.Accept = request.accept;
  if (apiKey()) headers.Authorization = `Bearer ${apiKey()}`;
  let body;
  if (request.json) {
    headers["Content-Type"] = "application/json";
    body = JSON.stringify(request.json);
  } else if (request.form) {
    body = new FormData();
    for (const [name, value] of request.form) body.append(name, value);
  }
  let response;
  try {
    response = await fetch(address(request.path), { method: request.method ?? "GET", headers, body, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server does not answer. Is it still running?");
  }
  if (!response.ok) throw await problem(response);
  return response;
}

async function problem(response) {
  const requestId = response.headers.get("x-request-id") ?? "";
  const { status } = response;
  let words = `The server answered ${status}.`;
  try {
    const { error } = await response.json();
    if (error?.message) words = sentence(error.message);
  } catch {
    // Not every proxy answers in JSON.
  }
  if (status === 401) words = "This server wants an API key: set it with the key button at the top.";
  const wait = Number(response.headers.get("retry-after"));
  if ((status === 429 || status === 503) && wait > 0) words += ` Try again in ${wait} s.`;
  return new Problem(words, { status, requestId });
}

function sentence(text) {
  const upper = text[0].toUpperCase() + text.slice(1);
  return /[.!?]$/.test(upper) ? upper : `${upper}.`;
}

/** The events of a `text/event-stream` response, parsed; an error in it is thrown. */
export async function* events(response) {
  const requestId = response.headers.get("x-request-id") ?? "";
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    let chunk;
    try {
      chunk = await reader.read();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem("The connection broke off in the middle of the answer.", { requestId });
    }
    text = (text + (chunk.value ?? "")).replaceAll("\r\n", "\n");
    let end;
    while ((end = text.indexOf("\n\n")) >= 0) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
      if (data.length === 0 || data[0] === "[DONE]") continue;
      const event = JSON.parse(data.join("\n"));
      if (event.error) throw new Problem(sentence(event.error.message), { requestId });
      yield event;
    }
    if (chunk.done) return;
  }
}

/** The request as a command for a shell; a key is named, not shown. */
export function curl(request, output) {
  const parts = ["curl"];
  if (request.form || request.json) parts[0] += " -N";
  parts[0] += ` ${quote(address(request.path))}`;
  if (apiKey()) parts.push('-H "Authorization: Bearer $AUDIOCPP_API_KEY"');
  if (request.accept) parts.push(`-H ${quote(`Accept: ${request.accept}`)}`);
  if (request.json) {
    parts.push("-H 'Content-Type: application/json'");
    parts.push(`-d ${quote(JSON.stringify(request.json))}`);
  }
  for (const [name, value] of request.form ?? []) {
    if (value instanceof Blob) {
      const file = (value.name ?? "recording.wav").replace(/["\\]/g, "\\$&");
      parts.push(`-F ${quote(`${name}=@"${file}"`)}`);
    } else {
      parts.push(`--form-string ${quote(`${name}=${value}`)}`);
    }
  }
  if (output) parts.push(`-o ${quote(output)}`);
  return parts.join(" \\\n  ");
}

function quote(text) {
  return /^[\w./:=@,+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
