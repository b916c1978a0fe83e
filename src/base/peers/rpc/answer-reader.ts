import { jsonValue } from '../../values/bounded-json.ts';

/** The limit of the part of an answer that is kept while it is read in pieces. */
export interface ReadingLimits<Kept> {
  /** Of the whole answer: beyond it nothing more is read. */
  readonly maxBytes: number;
  /**
   * What is kept of an element of the array `result`; undefined if nothing is. Left out, no element
   * is looked at.
   * @throws if the element is not one that was asked for
   */
  readonly keep?: (element: unknown) => Kept | undefined;
  /** A longer element makes the whole answer `too_large`. Left out, those of more than 16 KiB are passed over. */
  readonly longestElementBytes?: number;
}

/**
 * For answers that anyone can make long who pays for gas, and that cannot be asked for in parts: more than a block of a thousand
 * million gas can log. Of them an outline is read.
 */
export const longAnswer = { maxBytes: 512 * 1024 * 1024 } as const;

/** A log that Tollbook reads has a few hundred bytes. */
const defaultElementBytes = 16 * 1024;
/** What is left of an answer without the elements of its arrays and its long strings. */
const maxOutlineBytes = 64 * 1024;
/** A longer text comes out empty: the input of a transaction is one. */
const maxTextBytes = 4 * 1024;

const quote = 0x22;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;
/** A comma and white space between values of JSON. A result's elements are objects or arrays. */
const betweenElements: readonly number[] = [0x2c, 0x20, 0x0a, 0x0d, 0x09];

/**
 * Reads the JSON text of an answer in the pieces in which it arrives, in memory that does not grow with the answer: of `result`, if
 * that is an array, the elements that `keep` keeps; of everything else an outline, in which every array and every long string
 * is empty.
 */
export class AnswerReader<Kept = never> {
  readonly kept: Kept[] = [];
  readonly #limits: ReadingLimits<Kept>;
  readonly #maxElementBytes: number;
  readonly #outline = Buffer.allocUnsafe(maxOutlineBytes);
  #outlineBytes = 0;
  /** The objects around the next byte of the outline. */
  #depth = 0;
  #inText = false;
  #isEscaped = false;
  /** Where the text under way begins in the outline, after its quotation mark. */
  #textAt = 0;
  #isLongText = false;
  /** Inside an array: how many arrays and objects are open in it; undefined outside. */
  #nesting: number | undefined;
  #isResult = false;
  /** The element under way: its pieces, and their length so far. */
  #element: Buffer[] = [];
  #elementBytes = 0;
  #problem: 'malformed' | 'too_large' | undefined;

  constructor(limits: ReadingLimits<Kept>) {
    this.#limits = limits;
    this.#maxElementBytes = limits.longestElementBytes ?? defaultElementBytes;
  }

  /** Why the rest need not be read. */
  get problem(): 'malformed' | 'too_large' | undefined {
    return this.#problem;
  }

  write(piece: Buffer): void {
    let at = 0;
    while (at < piece.length && !this.#problem)
      at = this.#nesting === undefined ? this.#readOutline(piece, at) : this.#readArray(piece, at);
  }

  /** The answer, its arrays empty; undefined if it is not JSON. */
  end(): unknown {
    const isWhole = this.#depth === 0 && this.#nesting === undefined && !this.#inText;
    return isWhole && !this.#problem ? jsonValue(this.#outline.subarray(0, this.#outlineBytes)) : undefined;
  }

  /** Up to the next array. Returns where that begins. */
  #readOutline(piece: Buffer, from: number): number {
    for (let at = from; at < piece.length; at++) {
      const byte = piece[at] ?? 0;
      if (this.#inText) this.#readText(byte);
      else {
        this.#note(byte);
        if (byte === quote) {
          this.#inText = true;
          this.#isLongText = false;
          this.#textAt = this.#outlineBytes;
        } else if (byte === openBrace) this.#depth += 1;
        else if (byte === closeBrace) this.#depth -= 1;
        else if (byte === openBracket) {
          this.#nesting = 0;
          this.#isResult = this.#depth === 1 && this.#isAfterName('result');
          return at + 1;
        }
      }
      if (this.#problem) break;
    }
    return piece.length;
  }

  #readText(byte: number): void {
    const isEnd = byte === quote && !this.#isEscaped;
    this.#isEscaped = byte === backslash && !this.#isEscaped;
    if (isEnd) this.#inText = false;
    else if (this.#isLongText) return;
    else if (this.#outlineBytes - this.#textAt >= maxTextBytes) {
      this.#isLongText = true;
      this.#outlineBytes = this.#textAt;
      return;
    }
    this.#note(byte);
  }

  /** Up to the end of the array. Returns the position at which the outline continues. */
  #readArray(piece: Buffer, from: number): number {
    let begin = from;
    let nesting = this.#nesting ?? 0;
    for (let at = from; at < piece.length; at++) {
      const byte = piece[at] ?? 0;
      if (this.#inText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === backslash) this.#isEscaped = true;
        else if (byte === quote) this.#inText = false;
      } else if (byte === openBrace || byte === openBracket) {
        if (nesting === 0) begin = at;
        nesting += 1;
      } else if (byte === closeBrace || byte === closeBracket) {
        if (nesting === 0) return this.#endArray(byte, at);
        nesting -= 1;
        if (nesting === 0) {
          this.#addToElement(piece.subarray(begin, at + 1));
          this.#endElement();
          if (this.#problem) break;
        }
      } else {
        if (byte === quote) this.#inText = true;
        if (nesting === 0 && this.#isKept() && !betweenElements.includes(byte)) this.#problem = 'malformed';
      }
    }
    if (nesting > 0) this.#addToElement(piece.subarray(begin));
    this.#nesting = nesting;
    return piece.length;
  }

  #endArray(byte: number, at: number): number {
    if (byte !== closeBracket) this.#problem = 'malformed';
    this.#nesting = undefined;
    this.#note(closeBracket);
    return at + 1;
  }

  #isKept(): boolean {
    return this.#isResult && this.#limits.keep !== undefined;
  }

  #addToElement(part: Buffer): void {
    if (!this.#isKept()) return;
    this.#elementBytes += part.length;
    if (this.#elementBytes > this.#maxElementBytes) {
      this.#element = [];
      if (this.#limits.longestElementBytes !== undefined) this.#problem = 'too_large';
    }
    // a piece of the connection's buffer may be used again
    else this.#element.push(Buffer.from(part));
  }

  #endElement(): void {
    const { keep } = this.#limits;
    const isShort = this.#elementBytes <= this.#maxElementBytes;
    if (keep && this.#isResult && isShort) {
      try {
        const kept = keep(jsonValue(Buffer.concat(this.#element)));
        if (kept !== undefined) this.kept.push(kept);
      } catch {
        this.#problem = 'malformed';
      }
    }
    this.#element = [];
    this.#elementBytes = 0;
  }

  #isAfterName(name: string): boolean {
    const before = this.#outline.subarray(Math.max(0, this.#outlineBytes - 64), this.#outlineBytes);
    return new RegExp(`"${name}"\\s*:\\s*\\[$`).test(before.toString('latin1'));
  }

  #note(byte: number): void {
    if (this.#outlineBytes === maxOutlineBytes) this.#problem = 'too_large';
    else this.#outline[this.#outlineBytes++] = byte;
  }
}
