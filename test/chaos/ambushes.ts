import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, jsonAnswer, type Reply } from '../support/http-proxy.ts';

/** What goes wrong with single payments, planned before they are sent. */
export interface Ambushes {
  /** The first settle request of this payment is answered with a failure before broadcast, and nothing is sent. */
  failFirstSettle(nonce: string): void;
  /** The same, and the append of that failure is stalled until another settle request of this payment has landed. */
  stallFailure(nonce: string): void;
  /** The append that starts this payment is stalled until it is let go. */
  stallStart(nonce: string): { readonly begun: Promise<void>; letGo(): void };
  /** The facilitator answers each request with this payment with its own error. */
  provokeErrors(nonce: string): void;
  /** The planned answer to a request, if there is one. */
  answer(request: FacilitatorRequest, forward: () => Promise<Answer>): Promise<Reply | undefined>;
  /** The stall of an append, by its text, if there is one. */
  stallOf(append: string): Stall | undefined;
}

export interface FacilitatorRequest {
  readonly place: 'verify' | 'settle';
  readonly nonce: string;
  readonly signature: string;
  readonly about: { readonly network: string; readonly payer: string };
}

/** An append that must wait. */
export interface Stall {
  readonly over: Promise<unknown>;
  /** To be called once the append is answered, or never will be. */
  end(): void;
}

interface Waiting {
  readonly over: PromiseWithResolvers<void>;
  readonly ended: PromiseWithResolvers<void>;
}

/** An append is stalled for no longer than this, and an answer waits for no stalled append longer than this. */
const longestStallMs = 14_000;
const longestAppendMs = 1_000;
/** `0x` and 65 bytes. Facilitators have answered other signatures with 500. */
const signatureChars = 132;

const internalError: Answer = {
  status: 500,
  headers: { 'content-type': 'text/plain' },
  body: Buffer.from('Internal Server Error'),
};

/** @param onStall makes another gateway settle the payment with this nonce again soon */
export function createAmbushes(onStall: (nonce: string, isOver: () => boolean) => Promise<void>): Ambushes {
  const failing = new Set<string>();
  const provoking = new Set<string>();
  const stalled = new Map<string, Waiting>();
  const starts = new Map<string, { readonly begin: () => void; readonly over: Promise<void> }>();
  return {
    failFirstSettle: (nonce) => void failing.add(nonce),
    stallFailure(nonce) {
      failing.add(nonce);
      stalled.set(nonce, { over: Promise.withResolvers(), ended: Promise.withResolvers() });
    },
    stallStart(nonce) {
      const [begun, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      starts.set(nonce, { begin: () => begun.resolve(), over: over.promise });
      return { begun: begun.promise, letGo: () => over.resolve() };
    },
    provokeErrors: (nonce) => void provoking.add(nonce),
    async answer({ place, nonce, signature, about }, forward) {
      if (provoking.has(nonce) || signature.length !== signatureChars) return internalError;
      if (place === 'verify') return undefined;
      if (failing.delete(nonce))
        return jsonAnswer({ success: false, errorReason: 'insufficient_funds', transaction: '', ...about });
      const waiting = stalled.get(nonce);
      if (!waiting) return undefined;
      const reply = await forward();
      waiting.over.resolve();
      await Promise.race([waiting.ended.promise, sleep(longestAppendMs)]);
      return reply;
    },
    stallOf(append) {
      const start =
        append.includes('settlement_started') && [...starts].find(([nonce]) => append.includes(nonce));
      if (start) {
        const [nonce, { begin, over }] = start;
        starts.delete(nonce);
        begin();
        return { over: Promise.race([over, sleep(longestStallMs)]), end: () => {} };
      }
      if (!append.includes('"settlement_failed"')) return undefined;
      const found = [...stalled].find(([nonce]) => append.includes(nonce));
      if (!found) return undefined;
      const [nonce, { over, ended }] = found;
      void onStall(nonce, () => !stalled.has(nonce));
      return {
        over: Promise.race([over.promise, sleep(longestStallMs)]),
        end() {
          stalled.delete(nonce);
          ended.resolve();
        },
      };
    },
  };
}
