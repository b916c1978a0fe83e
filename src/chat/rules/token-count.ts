import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ChatRequest } from './chat-request.ts';

/** The tokens of a completion whose upstream reported none: an estimate, because its tokenizer is not known. */
export interface UsageEstimate {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly isEstimate: true;
}

/** Merging is quadratic in a word's length, so no piece is longer. */
const pieceUnits = 512;
/** Work done in one turn of the event loop: some milliseconds, 30 at worst. */
const unitsPerTurn = 16_384;
/** Of a longer text, only this many units are counted, spread evenly; the rest is extrapolated. */
const sampledUnits = 262_144;
/** As OpenAI counts its own: around each message, and before the answer. */
const messageTokens = 4;
const replyTokens = 3;

/** What an estimate reads of a request, which may be far larger and need not be kept for it. */
export interface PromptSample {
  readonly messages: number;
  readonly text: string;
  /** Of the whole text that the sample represents. */
  readonly units: number;
}

export function samplePrompt({ messages, body }: ChatRequest): PromptSample {
  const asked: string[] = [];
  for (const { content, ...rest } of messages) {
    asked.push(JSON.stringify(rest));
    if (typeof content === 'string') asked.push(content);
    for (const { text } of Array.isArray(content) ? content : [])
      if (typeof text === 'string') asked.push(text);
  }
  for (const key of ['tools', 'functions', 'response_format'])
    if (body[key] != null) asked.push(JSON.stringify(body[key]));
  const text = asked.join('\n');
  const sample = text.length <= sampledUnits ? text : [...samplePieces(text)].join('');
  return { messages: messages.length, text: sample, units: text.length };
}

/** Estimates the usage of a completion from question and answer, tool calls included. */
export async function estimateUsage(
  { messages, text, units }: PromptSample,
  completionTexts: readonly string[],
): Promise<UsageEstimate> {
  return {
    promptTokens: replyTokens + messages * messageTokens + (await countTokens(text, units)),
    completionTokens: await countTokens(completionTexts.join('\n')),
    isEstimate: true,
  };
}

/**
 * Estimates the tokens of a text. The first call loads the vocabulary: about 130 ms, 70 MB.
 * @param wholeUnits of the text that this one is a sample of
 */
export async function countTokens(text: string, wholeUnits = text.length): Promise<number> {
  const count = await tokenizer();
  let [tokens, units, unitsOfTurn] = [0, 0, 0];
  for (const piece of samplePieces(text)) {
    tokens += count(piece);
    units += piece.length;
    unitsOfTurn += piece.length;
    if (unitsOfTurn < unitsPerTurn) continue;
    unitsOfTurn = 0;
    await nextTurn();
  }
  if (units === wholeUnits) return tokens;
  const bytes = (Buffer.byteLength(text) / text.length) * wholeUnits;
  return Math.ceil(Math.min((tokens / units) * wholeUnits, bytes));
}

/** Imported when it is first needed: most upstreams report their usage. */
async function tokenizer(): Promise<(text: string) => number> {
  const { countTokens: count, setMergeCacheSize } = await import('gpt-tokenizer/encoding/o200k_base');
  // its cache would keep whole requests alive by their parts
  setMergeCacheSize(0);
  // a control token's spelling is plain text here
  const disallowedSpecial = new Set<string>();
  return (text) => count(text, { disallowedSpecial });
}

/** A text's pieces, or those of even samples of it. They end before a blank if there is one, as words do. */
function* samplePieces(text: string): Generator<string> {
  const samples = text.length <= sampledUnits ? 1 : 16;
  const stride = Math.floor(text.length / samples);
  const length = samples === 1 ? text.length : Math.floor(sampledUnits / samples);
  for (let sample = 0; sample < samples; sample += 1) {
    const end = sample * stride + length;
    let at = sample * stride;
    while (at < end) {
      const next = pieceEnd(text, at, end);
      yield text.slice(at, next);
      at = next;
    }
  }
}

function pieceEnd(text: string, at: number, end: number): number {
  if (at + pieceUnits >= end) return end;
  const blank = text.slice(at, at + pieceUnits + 1).lastIndexOf(' ');
  if (blank > 0) return at + blank;
  // never between the two halves of one character
  return at + pieceUnits - (isLowSurrogate(text.charCodeAt(at + pieceUnits)) ? 1 : 0);
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}
