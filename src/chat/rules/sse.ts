/** One event of an event stream: the bytes before a blank line. */
export interface SseEvent {
  /** The bytes as they came, the blank line included. */
  readonly raw: Buffer;
  /** The event's name, if the stream gives one. */
  readonly name?: string;
  /** The `data` lines joined by LF; left out if there is none, as in a comment. */
  readonly data?: string;
}

export interface SseSplitter {
  /**
   * The events that these bytes complete, each read on demand; to be read to their end before the next bytes are given. None once
   * an event was too large.
   */
  push(bytes: Buffer): Generator<SseEvent, undefined>;
  /** The bytes after the last blank line, with two line feeds added that end it; undefined when that is nothing. */
  end(): SseEvent | undefined;
  /** An event was longer than the limit, or had too many lines: all later bytes are dropped. */
  readonly isTooLarge: boolean;
}

const lineFeed = 10;
const carriageReturn = 13;
/** Of one event: a server of models sends a few. */
const maxLines = 4_096;

/**
 * Splits an event stream (WHATWG HTML, 9.2.6) wherever its bytes are cut. All raw bytes in a row are the stream.
 * An event is given with the first byte that ends it: an LF that comes later, after its CR, opens the next one's bytes.
 * @param maxEventBytes most bytes of one event
 */
export function createSseSplitter(maxEventBytes: number): SseSplitter {
  let pieces: Buffer[] = [];
  let pendingBytes = 0;
  /** Of the event under way. */
  let lines = 0;
  let isLineEmpty = true;
  let isBehindCr = false;
  let isFirst = true;
  let isTooLarge = false;

  const take = (piece: Buffer): void => {
    if (piece.length === 0) return;
    pieces.push(piece);
    pendingBytes += piece.length;
    if (pendingBytes > maxEventBytes || lines > maxLines) isTooLarge = true;
  };
  const takeEvent = (ending: string): SseEvent => {
    const raw = Buffer.concat([...pieces, Buffer.from(ending)]);
    pieces = [];
    pendingBytes = 0;
    lines = 0;
    const event = readEvent(raw, isFirst);
    isFirst = false;
    return event;
  };
  /** Where the next event ends in these bytes, from `start` on; undefined when it does not. */
  const findEnd = (bytes: Buffer, start: number): number | undefined => {
    for (let at = start; at < bytes.length; at += 1) {
      const byte = bytes[at];
      if (byte === lineFeed && isBehindCr) {
        isBehindCr = false;
        continue;
      }
      isBehindCr = byte === carriageReturn;
      if (byte !== lineFeed && byte !== carriageReturn) isLineEmpty = false;
      else if (!isLineEmpty) {
        isLineEmpty = true;
        lines += 1;
      } else if (isBehindCr && bytes[at + 1] === lineFeed) {
        isBehindCr = false;
        return at + 2;
      } else return at + 1;
    }
    return undefined;
  };

  return {
    get isTooLarge() {
      return isTooLarge;
    },
    *push(bytes) {
      let start = 0;
      while (!isTooLarge) {
        const end = findEnd(bytes, start);
        take(bytes.subarray(start, end));
        if (end === undefined || isTooLarge) break;
        yield takeEvent('');
        start = end;
      }
      return undefined;
    },
    end() {
      if (pendingBytes === 0 || isTooLarge) return undefined;
      return takeEvent('\n\n');
    },
  };
}

function readEvent(raw: Buffer, isFirst: boolean): SseEvent {
  const text = raw.toString('utf8');
  const data: string[] = [];
  let name: string | undefined;
  for (const line of (isFirst ? text.replace(/^\uFEFF/, '') : text).split(/\r\n|\r|\n/)) {
    const [field, value] = readLine(line);
    if (field === 'data') data.push(value);
    if (field === 'event') name = value;
  }
  return {
    raw,
    ...(name !== undefined && { name }),
    ...(data.length > 0 && { data: data.join('\n') }),
  };
}

/** A line's field and value; the field of a comment is empty. */
function readLine(line: string): readonly [field: string, value: string] {
  const colon = line.indexOf(':');
  if (colon < 0) return [line, ''];
  const value = line.slice(colon + 1);
  return [line.slice(0, colon), value.startsWith(' ') ? value.slice(1) : value];
}
