// Takes archives apart whose files are stored as they are.

/** The files of a zip archive, as parts of it: nothing is copied. */
export async function filesOf(archive) {
  const tailSize = Math.min(archive.size, 66_000);
  const tail = new DataView(await archive.slice(archive.size - tailSize).arrayBuffer());
  let at = tailSize - 22;
  while (at >= 0 && tail.getUint32(at, true) !== 0x06054b50) at -= 1;
  if (at < 0) throw new Error("The answer is not a whole archive.");
  const count = tail.getUint16(at + 10, true);
  const from = tail.getUint32(at + 16, true);
  const directory = new DataView(await archive.slice(from, from + tail.getUint32(at + 12, true)).arrayBuffer());
  const files = [];
  for (let i = 0, place = 0; i < count; i += 1) {
    const nameLength = directory.getUint16(place + 28, true);
    const name = new TextDecoder().decode(new Uint8Array(directory.buffer, place + 46, nameLength));
    const entry = { size: directory.getUint32(place + 20, true), start: directory.getUint32(place + 42, true) };
    if (directory.getUint16(place + 10, true) !== 0) throw new Error(`${name} is packed in a way this page does not read.`);
    const head = new DataView(await archive.slice(entry.start, entry.start + 30).arrayBuffer());
    const data = entry.start + 30 + head.getUint16(26, true) + head.getUint16(28, true);
    files.push({ name, blob: archive.slice(data, data + entry.size, "audio/wav") });
    place += 46 + nameLength + directory.getUint16(place + 30, true) + directory.getUint16(place + 32, true);
  }
  return files;
}
