import type { Random } from './random.ts';

/** A fault of one operation of a peer. `before` and `after` refer to the operation's effect. */
export interface Fault {
  readonly kind: FaultKind;
  /** Duration in milliseconds, for kinds that take time. */
  readonly ms: number;
}

export type FaultKind =
  | 'none'
  | 'delay'
  | 'cut_before'
  | 'cut_after'
  | 'duplicate'
  | 'error_before'
  | 'error_after'
  | 'garbage_before'
  | 'garbage_after'
  | 'hang_before'
  | 'hang_after'
  /** The effect happens after the caller's time-out. */
  | 'late'
  /** `success: true` without a transfer. */
  | 'lie_success'
  /** `success: true` with the transaction of another payment. */
  | 'lie_replay'
  /** A failure before broadcast is reported although the transfer landed. */
  | 'lie_failed'
  /** A valid payment is reported as invalid. */
  | 'lie_invalid'
  /** All that was signed is moved, or half of what was to be moved: of a payment by upto. */
  | 'move_more'
  | 'move_less'
  /** A lagging node: no receipt, no logs. */
  | 'stale'
  /** Half of a message arrives, then the connection closes. */
  | 'half'
  /** The answer is delayed. */
  | 'hold'
  /** The answer arrives in pieces, with pauses between them. */
  | 'pieces'
  /** The same, and the connection is cut in the middle. */
  | 'cut_midway'
  /** The same, and nothing follows in the middle. */
  | 'hang_midway';

/** The operations that have faults of their own. */
export type Place =
  | 'verify'
  | 'settle'
  | 'supported'
  | 'rpc'
  | 'push'
  | 'lease'
  | 'report'
  | 'append'
  | 'query'
  /** A model's server. */
  | 'upstream'
  /** The upstream of a route. */
  | 'route_upstream'
  /** The chain of spends. */
  | 'spend_rpc'
  /** An append that credits a top-up. */
  | 'top_up';

/** Probabilities of the faults, per thousand operations. */
const perMille: Readonly<Record<Place, Partial<Record<FaultKind, number>>>> = {
  verify: {
    delay: 40,
    cut_before: 15,
    cut_after: 15,
    duplicate: 20,
    error_before: 10,
    error_after: 10,
    garbage_before: 10,
    garbage_after: 10,
    hang_before: 8,
    hang_after: 8,
    lie_invalid: 15,
  },
  settle: {
    delay: 60,
    cut_before: 50,
    cut_after: 70,
    duplicate: 50,
    error_before: 30,
    error_after: 40,
    garbage_before: 15,
    garbage_after: 30,
    hang_before: 20,
    hang_after: 50,
    late: 40,
    lie_success: 25,
    lie_replay: 120,
    lie_failed: 25,
    move_more: 200,
    move_less: 80,
  },
  supported: { error_before: 30, garbage_before: 30 },
  rpc: {
    delay: 30,
    cut_before: 20,
    cut_after: 20,
    duplicate: 20,
    error_before: 15,
    garbage_after: 15,
    hang_after: 5,
    stale: 30,
  },
  push: {
    delay: 50,
    cut_before: 40,
    cut_after: 60,
    duplicate: 50,
    error_before: 40,
    error_after: 40,
    garbage_after: 20,
    hang_before: 20,
    hang_after: 20,
  },
  lease: { delay: 40, cut_before: 40, cut_after: 60, error_before: 20, garbage_after: 20 },
  report: { delay: 40, cut_before: 60, cut_after: 80, duplicate: 60, error_before: 30, error_after: 30 },
  append: {
    delay: 30,
    cut_before: 20,
    cut_after: 30,
    duplicate: 40,
    error_before: 15,
    error_after: 20,
    half: 15,
    hold: 30,
  },
  upstream: {
    delay: 60,
    cut_before: 30,
    cut_after: 30,
    error_before: 50,
    error_after: 20,
    garbage_after: 30,
    hang_before: 15,
    hang_after: 20,
    pieces: 300,
    cut_midway: 60,
    hang_midway: 20,
  },
  route_upstream: {
    delay: 60,
    cut_before: 40,
    cut_after: 40,
    duplicate: 20,
    error_before: 50,
    error_after: 40,
    garbage_after: 20,
    hang_before: 15,
    hang_after: 20,
    late: 15,
    pieces: 350,
    cut_midway: 60,
    hang_midway: 20,
  },
  spend_rpc: {
    delay: 30,
    cut_before: 15,
    cut_after: 20,
    duplicate: 20,
    error_before: 10,
    error_after: 15,
    garbage_after: 10,
    hang_after: 5,
    stale: 20,
  },
  top_up: { hold: 400 },
  query: { delay: 10, cut_before: 4, cut_after: 6, error_after: 4, hold: 5 },
};

const msOf: Partial<Record<FaultKind, readonly [number, number]>> = {
  delay: [20, 600],
  late: [1_600, 3_500],
  hold: [50, 800],
};

/** Draws the fault of one operation at a place. */
export function drawFault(random: Random, place: Place): Fault {
  let rest = random.next() * 1_000;
  for (const [kind, share] of Object.entries(perMille[place])) {
    rest -= share;
    if (rest >= 0) continue;
    const [from, to] = msOf[kind as FaultKind] ?? [0, 0];
    return { kind: kind as FaultKind, ms: random.between(from, to) };
  }
  return { kind: 'none', ms: 0 };
}
