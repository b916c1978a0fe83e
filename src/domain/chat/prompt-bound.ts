import type { ChatMessage, ChatRequest } from './chat-request.ts';

/** What a model's template puts before the messages: default instructions, how tools are called, the date. */
const templateTokens = 1_024;
/** What a template puts around one message. */
const messageTokens = 32;
/** A line end, separators and the closing line, around each member of a list or table that is printed prettily. */
const memberTokens = 6;
/** Templates indent by four, and tokenizers have a token for sixteen blanks. */
const levelsPerIndentToken = 4;
/** Normal forms are looked at in pieces: some characters become eighteen. */
const pieceUnits = 65_536;
/** Marks on one character, with those that become marks. Normal forms sort them, in a time quadratic in their number. */
const manyMarks = /[\p{M}\uff9e\uff9f]{8,}/gu;
/** The normal form of a mark has at most this many times its bytes. */
const maxMarkGrowth = 3;

/**
 * So many tokens the prompt has at most, whatever the tokenizer: one token is at least one byte of text. Images, audio and
 * files are not counted: {@link unpricedParameter} refuses them.
 */
export function promptTokensBound({ body, messages }: ChatRequest): number {
  const { messages: _, ...rest } = body;
  let tokens = templateTokens + dataTokens(rest, 0);
  for (const message of messages) tokens += messageTokens + messageBound(message);
  return tokens;
}

function messageBound({ content, ...rest }: ChatMessage): number {
  if (!Array.isArray(content)) return textTokens(content ?? '') + dataTokens(rest, 0);
  let tokens = dataTokens(rest, 0);
  for (const { text, ...others } of content)
    tokens +=
      typeof text === 'string'
        ? textTokens(text) + dataTokens(others, 0)
        : dataTokens({ text, ...others }, 0);
  return tokens;
}

/** Tokenizers may read a normal form of the text, so the longest one counts. */
function textTokens(text: string): number {
  const bytes = Buffer.byteLength(text);
  if (bytes === text.length) return bytes;
  let [composed, compatible, marks] = [0, 0, 0];
  const countMarks = (run: string): string => {
    marks += Buffer.byteLength(run);
    return ' ';
  };
  for (let at = 0; at < text.length; at += pieceUnits) {
    const piece = text.slice(at, at + pieceUnits).replaceAll(manyMarks, countMarks);
    composed += Buffer.byteLength(piece.normalize('NFC'));
    compatible += Buffer.byteLength(piece.normalize('NFKC'));
  }
  return Math.max(bytes, Math.max(composed, compatible) + marks * maxMarkGrowth);
}

/** JSON that a template writes its own way: indented, or with every unusual character as `\u0000`. */
function dataTokens(value: unknown, depth: number): number {
  if (typeof value === 'string') return 2 + Math.max(textTokens(value), escapedLength(value));
  if (typeof value !== 'object' || value === null) return String(value).length;
  const tokensOfMember = memberTokens + Math.ceil(depth / levelsPerIndentToken);
  let tokens = tokensOfMember;
  if (Array.isArray(value))
    for (const member of value) tokens += tokensOfMember + dataTokens(member, depth + 1);
  else
    for (const [key, member] of Object.entries(value))
      tokens += tokensOfMember + dataTokens(key, depth) + dataTokens(member, depth + 1);
  return tokens;
}

function escapedLength(text: string): number {
  let length = 0;
  for (let at = 0; at < text.length; at += 1) length += asciiLengths[text.charCodeAt(at)] ?? 6;
  return length;
}

/** Quotes, the backslash and what is escaped for HTML's sake may become six characters each, as all else does. */
const asciiLengths = Array.from({ length: 0x7f }, (_, unit) => {
  const character = String.fromCharCode(unit);
  return unit >= 0x20 && !`"'\\<>&`.includes(character) ? 1 : 6;
});
