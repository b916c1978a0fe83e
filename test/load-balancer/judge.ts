import type { Attempt } from '../chaos/records.ts';

export const peers = ['facilitator', 'chain', 'push runner', 'lease runner', 'model', 'mail'] as const;
export type PeerName = (typeof peers)[number];

/** How a peer is away: it closes connections, says nothing, or a proxy in front of it answers 502. */
export const absences = ['cut', 'silent', 'error'] as const;
export type Absence = (typeof absences)[number];

/** Times are in milliseconds of this machine's clock. */
export interface Outage {
  readonly peer: PeerName;
  readonly how: Absence;
  readonly from: number;
  /** Infinity while it lasts. */
  to: number;
}

/** One request of an honest client through the balancer, and its answer. */
export interface Exchange extends Pick<Attempt, 'sentAt' | 'endedAt' | 'status' | 'code'> {
  readonly operation: Operation;
  readonly path: string;
  /** Of the payment, if the request has one. */
  readonly nonce?: string | undefined;
}

export type Operation =
  | 'offer'
  | 'payment'
  | 'receipt'
  | 'lease'
  | 'report'
  | 'completion'
  | 'sign_up'
  | 'read';

/** The answer that an honest request is made for. */
const wanted: Readonly<Record<Operation, number>> = {
  offer: 402,
  payment: 202,
  receipt: 200,
  lease: 200,
  report: 200,
  completion: 200,
  sign_up: 200,
  read: 200,
};

/**
 * The only other answers that are no failures: those by which a gateway says that it needs a peer that is unreachable. All of them come
 * before anything is charged, which the ledger must show; `settlement_pending` says that the payment may have been made, and that
 * the gateway finds out.
 */
const named: Readonly<Record<PeerName, Partial<Record<Operation, readonly string[]>>>> = {
  facilitator: { payment: ['503 facilitator_unavailable', '503 settlement_pending'] },
  chain: { payment: ['503 settlement_pending'] },
  'push runner': {},
  'lease runner': {},
  model: { completion: ['502 upstream_error', '503 upstream_unavailable', '504 upstream_timeout'] },
  mail: {},
};

/** A circuit breaker stays open for up to 30 seconds after the peer is back. */
const aftermathMs = 32_000;

export type Verdict = 'served' | 'named' | 'failed';

export function judge(exchange: Exchange, outages: readonly Outage[]): Verdict {
  const { operation, status, code, sentAt, endedAt } = exchange;
  if (status === wanted[operation]) return 'served';
  const isNamed = outages.some(
    ({ peer, from, to }) =>
      from <= endedAt &&
      to + aftermathMs >= sentAt &&
      named[peer][operation]?.includes(`${status} ${code}`) === true,
  );
  return isNamed ? 'named' : 'failed';
}

/** Whether a payment was started before it was refused as not started. Undefined: it never was. */
export function isRefusedBeforePayment({ code, endedAt }: Exchange, startedAt: number | undefined): boolean {
  return code === 'settlement_pending' || startedAt === undefined || startedAt > endedAt;
}
