import type { ChatMessage, ChatRequest } from './chat-request.ts';
import { longestNormalLength } from './normal-length.ts';

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
 * So many tokens the prompt has at most, whatever the tokenizer: one token is at least one byte of text. Images, audio and
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
