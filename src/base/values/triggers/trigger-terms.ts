import { createHash } from 'node:crypto';
import { type CanonicalValue, canonicalJson } from '../canonical-json.ts';
import type { Address, Caip2 } from '../primitives.ts';
import type { ChainEvent } from './chain-event.ts';
import type { CronSchedule } from './cron-schedule.ts';
import type { MissedTerms } from './due-firings.ts';

/** When a trigger fires. */
export interface CronTerms extends MissedTerms {
  /** The configured expression. */
  readonly text: string;
  readonly timeZone: string;
  readonly schedule: CronSchedule;
}

/** Which blocks count: those that the chain calls final, or those with this many blocks above them. */
export type Finality = 'final' | { readonly confirmations: number };

/** What a trigger fires at. */
export interface ChainTerms {
  readonly network: Caip2;
  readonly chainId: number;
  readonly rpcUrl: string;
  readonly addresses: readonly Address[];
  readonly event: ChainEvent;
  readonly finality: Finality;
  /** The first block that counts; undefined for the one after that at the first sight. */
  readonly startBlock: bigint | undefined;
  /** How often the chain is looked at. */
  readonly pollSecs: number;
  /** The operator is alerted if the cursor's block is older than this. */
  readonly behindAfterSecs: number;
}

/** Names the times of a schedule: one with other times has another cursor. */
export function cronTermsHash({ text, timeZone }: CronTerms): Buffer {
  return hashOf([text, timeZone]);
}

/** Names the logs that a trigger fires at, and when: one with other logs has another cursor. */
export function chainTermsHash({ addresses, event, finality, startBlock }: ChainTerms): Buffer {
  const blocks = finality === 'final' ? finality : finality.confirmations;
  const first = startBlock === undefined ? null : String(startBlock);
  return hashOf([addresses.toSorted(), event.signature, event.topics, blocks, first]);
}

function hashOf(terms: CanonicalValue): Buffer {
  return createHash('sha256').update(canonicalJson(terms)).digest();
}
