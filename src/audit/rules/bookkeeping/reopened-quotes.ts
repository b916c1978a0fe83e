import type { EventDescriptor } from '../../../ledger/rules/descriptor.ts';
import { eventDescriptors, isEventType } from '../../../ledger/rules/event.ts';
import { isTriggeredStream } from '../../../base/values/triggers/trigger.ts';

/** The part of an event that decides whether it reopens a quote. */
export interface SkimmedEvent {
  readonly type: string;
  readonly stream: string;
  readonly data: object;
}

/**
 * The quotes with an event after they seemed closed: a late settlement, one that did not stand, a refund, a late top-up. They
 * are found by reading the ledger once before the books are kept, so that the books can forget all others. Memory grows with
 * such events only, plus two filters of fixed size, whose false positives only keep a quote longer.
 */
export class ReopenedQuotes {
  readonly #reopened = new Set<string>();
  readonly #failed = new DigestFilter();
  readonly #completed = new DigestFilter();

  /** Reads the next event. */
  skim({ type, stream, data }: SkimmedEvent): void {
    if (!isEventType(type) || isTriggeredStream(stream)) return;
    const { transition, reopens }: EventDescriptor = eventDescriptors[type];
    if (transition.of === 'payment' && transition.to === 'settlement_failed') this.#failed.add(stream);
    if (transition.of === 'call' && transition.to === 'completed') this.#completed.add(stream);
    if (reopens === 'none') return;
    // an event of another stream names the quote
    const digest =
      'quote_digest' in data && typeof data.quote_digest === 'string' ? data.quote_digest : stream;
    const mayReopen = {
      always: () => true,
      after_failure: () => this.#failed.has(digest),
      after_completion: () => this.#completed.has(digest),
    };
    if (mayReopen[reopens]()) this.#reopened.add(digest);
  }

  has(digest: string): boolean {
    return this.#reopened.has(digest);
  }
}

const filterBits = 2 ** 26;
const hexDigitsEach = 7;

/** A Bloom filter of 8 MiB. Digests are hashes already, so parts of them are the bit positions. */
class DigestFilter {
  readonly #words = new Int32Array(filterBits / 32);

  add(digest: string): void {
    for (const place of bitsOf(digest))
      this.#words[place >>> 5] = (this.#words[place >>> 5] ?? 0) | (1 << (place & 31));
  }

  has(digest: string): boolean {
    return bitsOf(digest).every((place) => ((this.#words[place >>> 5] ?? 0) & (1 << (place & 31))) !== 0);
  }
}

function bitsOf(digest: string): number[] {
  return [2, 18, 34, 50].map((from) => parseInt(digest.slice(from, from + hexDigitsEach), 16) % filterBits);
}
