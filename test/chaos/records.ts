import { z } from 'zod';
import type { SpendAuth } from '../../src/accounts/rules/spend/spend-auth.ts';
import type { Payment } from '../support/payer.ts';
import { type Permit, signedTransfer } from '../support/permit2.ts';

/** One signed authorization; it may be sent many times. */
export interface SignedOnce {
  /** `asset/payer/nonce` in lower case. */
  readonly key: string;
  readonly asset: string;
  readonly payer: string;
  readonly nonce: string;
  readonly payment: Payment | Permit;
}

/** One request and its answer, if there was one. Times are in milliseconds of this machine's clock. */
export interface Attempt {
  readonly gateway: string;
  readonly sentAt: number;
  readonly endedAt: number;
  /** Undefined when the connection broke or the client timed out. */
  readonly status: number | undefined;
  readonly code?: string | undefined;
  readonly reason?: string | undefined;
  readonly callId?: number | undefined;
  readonly digest?: string | undefined;
  /** What the upstream of a route answered: whether it was charged, and the hash of its body, if that arrived whole. */
  readonly answer?: { readonly isCharged: boolean; readonly sha256: string | undefined } | undefined;
}

/** A client that repeats one payment with one request until the answer is definite. */
export interface Presentation {
  readonly scenario: string;
  readonly signed: SignedOnce;
  readonly version: 1 | 2;
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly attempts: Attempt[];
  /** `closed`: it is paid, and its refund is due or its answer is not stored any more. */
  end: 'accepted' | 'refused' | 'closed' | 'left' | 'unanswered';
}

/** One request of a gateway to the upstream of a route, as its proxy saw it. Times are in milliseconds of this machine's clock. */
export interface RouteCall {
  readonly method: string;
  readonly path: string;
  readonly bodySha256: string;
  /** The digest of the quote that is paid. */
  readonly stream: string;
  readonly callId: number;
  readonly attempt: number;
  readonly idempotencyKey: string;
  readonly askedAt: number;
  /** When the gateway had the answer, or was gone. */
  endedAt: number | undefined;
  /** Undefined where it was not whole. */
  answer: RouteAnswer | undefined;
}

/** What the upstream of a route answered. */
export interface RouteAnswer {
  readonly status: number;
  readonly sha256: string;
  /** What it says that it costs. */
  readonly prices: readonly string[];
  /** It says so at its end: its client has it before it is paid. */
  readonly isPricedLast: boolean;
}

/** One request for a completion and what came of it. */
export interface CompletionAttempt {
  readonly gateway: string;
  readonly sentAt: number;
  readonly endedAt: number;
  /** Undefined when the connection broke before an answer, or the client left. */
  readonly status: number | undefined;
  readonly code?: string | undefined;
  /** The id of the completion, with a 200. */
  readonly chatId?: string | undefined;
  /** Whether the client read all of its answer; `left`: the client closed the connection itself. */
  readonly end: 'whole' | 'broken' | 'left';
  /** What the answer says it used, if it was not a stream and whole. */
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number } | undefined;
}

/** What pays for a completion: the credit of an account, or a spend. */
export type Means =
  | { readonly kind: 'credit'; readonly account: CreditAccount }
  | { readonly kind: 'spend'; readonly spend: SignedSpend; readonly secret: string | undefined };

/** An account with an API key. The id is known where the harness opened it, the wallet if it was topped up. */
export interface CreditAccount {
  readonly key: string;
  readonly accountId?: number;
  readonly wallet?: string;
}

/** A signed spend; it may be sent many times, also by a third party to its chain. */
export interface SignedSpend {
  readonly auth: SpendAuth;
  readonly authHash: string;
  /** A third party has landed it. */
  isFrontRun: boolean;
}

/** A client that asks for one completion, and repeats it as long as it makes sense. */
export interface Completion {
  readonly scenario: string;
  readonly means: Means;
  /** Unique; it is in the request that the model's server gets. */
  readonly prompt: string;
  readonly attempts: CompletionAttempt[];
  end: 'answered' | 'refused' | 'left' | 'unanswered';
}

/** What clients and peers observed in a run, independent of the gateway. */
export interface Records {
  readonly presentations: Presentation[];
  readonly signed: Map<string, SignedOnce>;
  /** Payments that the facilitator falsely reported as settled. */
  readonly lies: Set<string>;
  /** Payments by upto of which the facilitator moved another amount than it was told. */
  readonly movedOtherwise: Set<string>;
  /** Payments that a facilitator reported as valid at least once. */
  readonly validated: Set<string>;
  /** When the last settle request of a payment was sent, by its nonce and this machine's clock. */
  readonly settles: Map<string, number>;
  /** When an append that starts the payment with this nonce was first sent, by this machine's clock. */
  readonly startSentAt: Map<string, number>;
  /** The last settling transaction that the facilitator reported, by `asset/payer`. */
  readonly transactions: Map<string, string>;
  /** Payments that a third party landed after the gateway had refused them, and when. */
  readonly landedLate: Map<string, number>;
  /** The nonces of payments that a third party landed after their request, and before anyone had verified them. */
  readonly landedBeforeVerify: Set<string>;
  /** Payments whose nonce their payer has cancelled, or used for something else. */
  readonly voided: Set<string>;
  /** Payments whose transfers a reorg removed; some have landed again. */
  readonly reorged: Set<string>;
  /** Addresses that waited for the body of a client without credentials. */
  readonly awaitedBodies: string[];
  /** The statuses with which a flood of requests for jobs was answered. */
  readonly floodStatuses: number[];
  readonly routeCalls: RouteCall[];
  readonly completions: Completion[];
  readonly spends: SignedSpend[];
  /** What the harness granted, by account, in micros. */
  readonly grants: Map<number, bigint>;
  /** By prompt: how often the model's server was asked, and how often it began an answer. */
  readonly upstream: Map<string, { asked: number; begun: number }>;
  addLie(asset: string, payer: string, nonce: string): void;
  add(payment: Payment | Permit): SignedOnce;
}

export function paymentKey(asset: string, payer: string, nonce: string): string {
  return `${asset}/${payer}/${nonce}`.toLowerCase();
}

export function createRecords(): Records {
  const signed = new Map<string, SignedOnce>();
  const lies = new Set<string>();
  return {
    presentations: [],
    signed,
    lies,
    movedOtherwise: new Set(),
    validated: new Set(),
    settles: new Map(),
    startSentAt: new Map(),
    transactions: new Map(),
    landedLate: new Map(),
    landedBeforeVerify: new Set(),
    voided: new Set(),
    reorged: new Set(),
    awaitedBodies: [],
    floodStatuses: [],
    routeCalls: [],
    completions: [],
    spends: [],
    grants: new Map(),
    upstream: new Map(),
    addLie: (asset, payer, nonce) => void lies.add(paymentKey(asset, payer, nonce)),
    add(payment) {
      const { from, nonce } = signedTransfer(payment);
      const { asset } = payment.accepted;
      const one = { key: paymentKey(asset, from, nonce), asset, payer: from, nonce, payment };
      signed.set(one.key, one);
      return one;
    },
  };
}

const completionRequest = z.object({ messages: z.array(z.object({ content: z.string() })).min(1) });

/** Counts that the model's server is asked for a completion. */
export function countAsked({ upstream }: Pick<Records, 'upstream'>, body: Buffer) {
  const prompt = promptIn(body.toString('utf8'));
  const seen = upstream.get(prompt) ?? { asked: 0, begun: 0 };
  upstream.set(prompt, seen);
  seen.asked += 1;
  return seen;
}

/** Empty where there is none. */
function promptIn(body: string): string {
  try {
    return completionRequest.parse(JSON.parse(body)).messages.at(-1)?.content ?? '';
  } catch {
    return '';
  }
}
