import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultKind } from '../chaos/faults.ts';
import { applyFault } from '../chaos/http-faults.ts';
import type { Answer, Reply } from '../chaos/http-proxy.ts';

export const peers = ['facilitator', 'chain', 'push runner', 'lease runner', 'model', 'mail'] as const;
export type Peer = (typeof peers)[number];

/** How a peer is unreachable: it closes connections, says nothing, or a proxy in front of it answers 502. */
export const absences = ['cut', 'silent', 'error'] as const;
export type Absence = (typeof absences)[number];

/** Times are in milliseconds of this machine's clock. */
export interface Outage {
  readonly peer: Peer;
  readonly how: Absence;
  readonly from: number;
  /** Infinity while it lasts. */
  to: number;
}

export interface Outages {
  /** Those so far. */
  readonly all: readonly Outage[];
  isAway(peer: Peer): boolean;
  begin(peer: Peer, how: Absence): void;
  end(): void;
  /** The answer of a peer, or what its absence makes of it. */
  through(peer: Peer, forward: () => Promise<Answer>): Promise<Reply>;
}

const kinds: Readonly<Record<Absence, FaultKind>> = {
  cut: 'cut_before',
  silent: 'hang_before',
  error: 'error_before',
};

export function createOutages(): Outages {
  const all: Outage[] = [];
  let over = new AbortController();
  const now = (peer: Peer): Outage | undefined => {
    const last = all.at(-1);
    return last?.peer === peer && last.to === Infinity ? last : undefined;
  };
  // one that hangs lets go when the outage ends
  const pause = async (ms: number): Promise<void> => {
    await sleep(ms, undefined, { signal: over.signal }).catch(() => {});
  };
  return {
    all,
    isAway: (peer) => now(peer) !== undefined,
    begin(peer, how) {
      over = new AbortController();
      all.push({ peer, how, from: Date.now(), to: Infinity });
    },
    end() {
      const last = all.at(-1);
      if (last?.to === Infinity) last.to = Date.now();
      over.abort();
    },
    async through(peer, forward) {
      const outage = now(peer);
      return applyFault({ kind: outage ? kinds[outage.how] : 'none', ms: 0 }, forward, { pause });
    },
  };
}
