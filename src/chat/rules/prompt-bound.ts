import type { ChatMessage, ChatRequest } from './chat-request.ts';

/** What a model's template puts before the messages: default instructions, how tools are called, the date. */
const templateTokens = 1_024;
/** What a template puts around one message. */
const messageTokens = 32;
/** A line end, separators and the closing line, around each member of a list or table that is printed prettily. */
const memberTokens = 6;
/** Templates indent by four, and tokenizers have a token for sixteen blanks. */
const levelsPerIndentToken = 4;

/** A bound that grows until it reaches a sufficient value. */
interface Bound {
  tokens: number;
  readonly enough: number;
}

/**
 * This many tokens the prompt has at most, whatever the tokenizer: one token is at least one byte of text. Images, audio and
 * files are not counted: {@link unpricedParameter} refuses them.
 * @param enough counting stops there, so that a body far longer than its model reads costs no time: the result is this or more
 */
export function promptTokensBound({ body, messages }: ChatRequest, enough = Infinity): number {
  const { messages: _, ...rest } = body;
  const bound: Bound = { tokens: templateTokens, enough };
  for (const message of messages) {
    if (bound.tokens >= enough) break;
    bound.tokens += messageTokens;
    addMessage(bound, message);
  }
  addData(bound, rest, 0);
  return bound.tokens;
}

function addMessage(bound: Bound, { content, ...rest }: ChatMessage): void {
  addData(bound, rest, 0);
  if (content == null || typeof content === 'string') return addText(bound, content ?? '');
  for (const { text, ...others } of content) {
    if (bound.tokens >= bound.enough) return;
    if (typeof text === 'string') {
      addText(bound, text);
      addData(bound, others, 0);
    } else addData(bound, { text, ...others }, 0);
  }
}

/** Tokenizers may read a normal form of the text, so the longest one counts. */
function addText(bound: Bound, text: string): void {
  bound.tokens += textTokens(text, bound.enough - bound.tokens);
}

function textTokens(text: string, enough: number): number {
  const bytes = Buffer.byteLength(text);
  return bytes === text.length || bytes >= enough ? bytes : longestNormalLength(text, enough);
}

/** JSON that a template writes its own way: indented, or with every unusual character as `\u0000`. */
function addData(bound: Bound, value: unknown, depth: number): void {
  if (bound.tokens >= bound.enough) return;
  if (typeof value === 'string') {
    const enough = bound.enough - bound.tokens;
    bound.tokens += 2 + Math.max(textTokens(value, enough), escapedLength(value, enough));
    return;
  }
  if (typeof value !== 'object' || value === null) {
    bound.tokens += String(value).length;
    return;
  }
  const tokensOfMember = memberTokens + Math.ceil(depth / levelsPerIndentToken);
  bound.tokens += tokensOfMember;
  for (const [key, member] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    if (bound.tokens >= bound.enough) return;
    bound.tokens += tokensOfMember;
    if (typeof key === 'string') addData(bound, key, depth);
    addData(bound, member, depth + 1);
  }
}

function escapedLength(text: string, enough: number): number {
  let length = 0;
  for (let at = 0; at < text.length && length < enough; at += 1)
    length += asciiLengths[text.charCodeAt(at)] ?? 6;
  return length;
}

/** Quotes, the backslash and characters escaped for HTML may become six characters each, as all else does. */
const asciiLengths = Array.from({ length: 0x7f }, (_, unit) => {
  const character = String.fromCharCode(unit);
  return unit >= 0x20 && !`"'\\<>&`.includes(character) ? 1 : 6;
});

/** Code points whose entries are computed together, when the first of them occurs. */
const pageSize = 256;
const joinsBit = 1 << 14;
const pages: (Uint16Array | undefined)[] = [];

/**
 * An upper bound on the bytes of a text in UTF-8, unchanged and in the normal forms NFC and NFKC. It is the sum over its
 * characters, so its time is linear, whereas normalizing many marks on one character takes a time quadratic in their number.
 * A character counts as long as its longest form, and without composition if a mark is next to it: composition never makes
 * a text longer.
 * @param most counting stops beyond it
 */
function longestNormalLength(text: string, most: number): number {
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
