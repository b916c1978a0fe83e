import pg from 'pg';
import { createLaneConnection } from './lane-connection.ts';
import type { DatabaseOptions } from './database.ts';
import { callFunction } from './functions.ts';
import { backOffMs } from '../../base/values/back-off.ts';

/** Why nothing is recorded any more: the database lacks events that it had acknowledged, or has others in their place. */
export interface LedgerHalt {
  /** One sentence without a full stop: the missing events, and how a gateway noticed. */
  readonly reason: string;
  /** The last event that was known to be recorded. */
  readonly knownSeq?: number | undefined;
  /** The last event of the database when this was noticed. */
  readonly foundSeq?: number | undefined;
  /** Whether another process has recorded it in the database already. */
  readonly isRecorded?: boolean;
  /** An operator has recovered the ledger since: it concerns this process alone, and is not recorded. */
  readonly isOver?: boolean;
}

/**
 * The ledger is not the one that this process, or another gateway, has written to. A command was not recorded, or was
 * recorded in that other ledger. It ends with a restart after `tollbook recover`.
 */
export class LedgerInconsistentError extends Error {
  override readonly name = 'LedgerInconsistentError';
  readonly halt: LedgerHalt;

  constructor(halt: LedgerHalt) {
    const remedy = halt.isOver
      ? 'Start this process again; the others continue'
      : 'Stop every gateway, restore the lost events or run `tollbook recover`, then start the gateways again';
    super(`the ledger is inconsistent, and nothing is sold: ${halt.reason}. ${remedy}`);
    this.halt = halt;
  }
}

/** The halt of a process whose appends up to an event were acknowledged by a database that does not have them all. */
export function wentBack(knownSeq: number, foundSeq: number): LedgerHalt {
  const reason =
    `the database went back in time: it had acknowledged the events up to ${knownSeq}, lacks some of them, and now ends at ` +
    `event ${foundSeq}, as after a failover that lost data or a restored backup`;
  return { reason, knownSeq, foundSeq };
}

/** The halt of a process that slept while others noticed a loss and an operator recovered the ledger. */
export function recoveredSince(knownSeq: number): LedgerHalt {
  const reason = `the ledger lost events up to ${knownSeq}, and was recovered while this process did not run`;
  return { reason, knownSeq, isOver: true };
}

/** Resolves once the synchronous standby, if there is one, has all that this connection has read. */
export function reachStandby(pool: pg.Pool): Promise<void> {
  return callFunction(pool, 'reach_standby', []);
}

const pauses = { firstMs: 100, longestMs: 5_000 };

/**
 * Records a halt in the database, so that every other gateway stops too; the first reason is kept. Tries until the database
 * takes it or `closing` aborts: a process that cannot write it has stopped by itself.
 */
export async function recordHalt(
  options: DatabaseOptions,
  { reason, knownSeq, foundSeq }: LedgerHalt,
  closing: AbortSignal,
): Promise<void> {
  const connection = createLaneConnection(options);
  const close = (): void => void connection.close();
  closing.addEventListener('abort', close, { once: true });
  // one simple-protocol message, because it waits for the lane's lock
  const statement = `select tollbook.halt_ledger(${pg.escapeLiteral(reason)}, ${knownSeq ?? 'null'}, ${foundSeq ?? 'null'}) as answer`;
  for (let attempt = 0; !closing.aborted; attempt++) {
    try {
      await connection.append(statement);
      break;
    } catch (error) {
      options.onError?.(error instanceof Error ? error : new Error(String(error)));
      await connection.pause(backOffMs(pauses, attempt));
    }
  }
  closing.removeEventListener('abort', close);
  await connection.close();
}
