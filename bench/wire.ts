/** Receives the bytes of one connection. */
export type TakeBytes = (chunk: Buffer) => void;

const endOfHead = Buffer.from('\r\n\r\n');
const endOfChunks = Buffer.from('\r\n0\r\n\r\n');

/**
 * Splits a connection's bytes into HTTP/1.1 messages. Supports only the HTTP that the programs of this bench use: it keeps
 * the load generator and the stub cheap compared with the servers that share their cores.
 */
export function splitMessages(onMessage: (head: string, body: Buffer) => void): TakeBytes {
  let pieces: Buffer[] = [];
  let mayEndIn = always;
  return (chunk) => {
    pieces.push(chunk);
    if (!mayEndIn(chunk)) return;
    let bytes = pieces.length === 1 ? chunk : Buffer.concat(pieces);
    mayEndIn = always;
    for (;;) {
      const headEnds = bytes.indexOf(endOfHead);
      if (headEnds < 0) break;
      const head = bytes.toString('latin1', 0, headEnds);
      const bodyStarts = headEnds + endOfHead.length;
      const ends = endOfMessage(head, bytes, bodyStarts);
      if (ends === undefined || ends > bytes.length) {
        mayEndIn = ends === undefined ? endsChunks(bytes) : bringsBytes(ends - bytes.length);
        break;
      }
      onMessage(head, bytes.subarray(bodyStarts, ends));
      bytes = bytes.subarray(ends);
    }
    pieces = bytes.length > 0 ? [bytes] : [];
  };
}

/** Whether an incomplete message may end in the next chunk; if not, parsing it again is skipped. */
type MayEndIn = (chunk: Buffer) => boolean;

const always: MayEndIn = () => true;

function bringsBytes(missing: number): MayEndIn {
  return (chunk) => {
    missing -= chunk.length;
    return missing <= 0;
  };
}

function endsChunks(bytes: Buffer): MayEndIn {
  let tail = bytes.subarray(-endOfChunks.length);
  return (chunk) => {
    const seen = Buffer.concat([tail, chunk]);
    tail = seen.subarray(-endOfChunks.length);
    return seen.includes(endOfChunks);
  };
}

/** The end of the message; undefined when it is not known yet. A chunked body is passed on unchanged. */
function endOfMessage(head: string, bytes: Buffer, bodyStarts: number): number | undefined {
  const length = headerOf(head, 'content-length');
  if (length !== undefined) return bodyStarts + Number(length);
  if (headerOf(head, 'transfer-encoding') === undefined) return bodyStarts;
  // starts at the line end of the head, so that the only chunk of an empty body is found too
  const at = bytes.indexOf(endOfChunks, bodyStarts - 2);
  return at < 0 ? undefined : at + endOfChunks.length;
}

const patterns = new Map<string, RegExp>();

/** A header of a message's head by its lower-case name. */
export function headerOf(head: string, name: string): string | undefined {
  const pattern = patterns.get(name) ?? new RegExp(`\\r\\n${name}: *([^\\r]*)`, 'i');
  patterns.set(name, pattern);
  return pattern.exec(head)?.[1];
}

/** The content of a whole message's body, which may be chunked. */
export function contentOf(head: string, body: Buffer): Buffer {
  if (headerOf(head, 'transfer-encoding') === undefined) return body;
  const pieces: Buffer[] = [];
  for (let at = 0; ;) {
    const starts = body.indexOf('\r\n', at) + 2;
    const bytes = Number.parseInt(body.toString('latin1', at, starts), 16);
    if (!(bytes > 0)) return Buffer.concat(pieces);
    pieces.push(body.subarray(starts, starts + bytes));
    at = starts + bytes + 2;
  }
}
