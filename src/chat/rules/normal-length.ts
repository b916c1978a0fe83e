/** Code points whose entries are computed together, when the first of them occurs. */
const pageSize = 256;
const joinsBit = 1 << 14;
const pages: (Uint16Array | undefined)[] = [];

/**
 * An upper bound on the bytes of a text in UTF-8, unchanged and in the normal forms NFC and NFKC. It is the sum over its
 * characters, so its time is linear, whereas normalizing many marks on one character takes a time quadratic in their number.
 * A character counts as long as its longest form, and without composition where a mark is next to it: composition never makes
 * a text longer.
 * @param most counting stops beyond it
 */
export function longestNormalLength(text: string, most: number): number {
  let length = 0;
  /** What the last character adds if a mark follows it. */
  let ifJoined = 0;
  for (let at = 0; at < text.length && length <= most; at += 1) {
    const codePoint = text.codePointAt(at) ?? 0;
    if (codePoint > 0xffff) at += 1;
    const entry = entryOf(codePoint);
    const composed = entry & 0x7f;
    const apart = (entry >> 7) & 0x7f;
    if ((entry & joinsBit) === 0) {
      length += composed;
      ifJoined = apart - composed;
    } else {
      length += apart + ifJoined;
      ifJoined = 0;
    }
  }
  return length;
}

function entryOf(codePoint: number): number {
  if (codePoint < 0x80) return 1 | (1 << 7);
  const number = Math.floor(codePoint / pageSize);
  const page = (pages[number] ??= newPage(number * pageSize));
  return page[codePoint % pageSize] ?? 0;
}

/** The length of each character in its longest composed form, its length in parts, and whether it changes the one before it. */
function newPage(first: number): Uint16Array {
  return Uint16Array.from({ length: pageSize }, (_, offset) => {
    const character = String.fromCodePoint(first + offset);
    const parts = character.normalize('NFKD');
    const bytes = Buffer.byteLength(character);
    const forms = [
      bytes,
      Buffer.byteLength(character.normalize('NFC')),
      Buffer.byteLength(character.normalize('NFKC')),
    ];
    const apart = Math.max(bytes, Buffer.byteLength(parts));
    return Math.max(...forms) | (apart << 7) | (/^\p{M}/u.test(parts) ? joinsBit : 0);
  });
}
