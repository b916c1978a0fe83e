import type pg from 'pg';
import type { TreeHead } from '../../../base/values/log/checkpoint.ts';
import { openBeside } from '../../../ledger/store/database.ts';
import { reachStandby } from '../../../ledger/store/halt.ts';
import { readLogTip } from '../../store/log.ts';
import { rootOfFirst } from './prove.ts';

/** What a tree head of this log says about the database. */
export type HeadComparison =
  | { readonly kind: 'same'; readonly head: TreeHead }
  /** The head covers events that the database lacks: it has `seq`. */
  | { readonly kind: 'ahead'; readonly head: TreeHead; readonly seq: number }
  | { readonly kind: 'other_history'; readonly head: TreeHead };

export type HeadDifference = Exclude<HeadComparison, { kind: 'same' }>;

/** Compares the database with a head that was durable before this call. */
export async function compareHead(pool: pg.Pool, head: TreeHead): Promise<HeadComparison> {
  const { seq, ...tree } = await readLogTip(pool, head.origin);
  if (head.size > seq) return { kind: 'ahead', head, seq };
  const isSame = head.size === 0 || head.root.equals(await rootOfFirst(pool, head.size, tree));
  return { kind: isSame ? 'same' : 'other_history', head };
}

const confirmTimeoutMs = 20_000;

/**
 * The same, if a difference halts the ledger: it counts only if it is still there on a new connection, to a server whose
 * standby has all of it. A connection to a primary that was demoted shows an old state.
 * @throws if that cannot be found out now
 */
export async function findDifference(pool: pg.Pool, head: TreeHead): Promise<HeadDifference | undefined> {
  if ((await compareHead(pool, head)).kind === 'same') return undefined;
  const beside = openBeside(pool, confirmTimeoutMs);
  try {
    const compared = await compareHead(beside, head);
    if (compared.kind === 'same') return undefined;
    await reachStandby(beside);
    return compared;
  } finally {
    await beside.end();
  }
}

/** @param place where the head is, as in "the folder /var/anchors holds a checkpoint" */
export function differenceOf(compared: HeadDifference, place: string): string {
  const { head } = compared;
  if (compared.kind === 'other_history')
    return (
      `the first ${head.size} events of this database are not those of the checkpoint in ${place}: ` +
      'it has another history'
    );
  return (
    `this database has ${compared.seq} events, but ${place} holds a checkpoint of ${head.size} events: ` +
    `the last ${head.size - compared.seq} events are missing, as in a restored backup`
  );
}

/** The newest tree head that this process has sealed or published. */
export interface KnownHead {
  /** Whether the database contradicts it. */
  check(pool: pg.Pool): Promise<HeadDifference | undefined>;
  /**
   * Keeps a larger head, unless the database contradicts the one known so far. The head must be durable: the database has
   * acknowledged it or a later commit, while one that was only read might still be lost.
   */
  learn(pool: pg.Pool, head: TreeHead): Promise<HeadDifference | undefined>;
}

export function createKnownHead(): KnownHead {
  let newest: TreeHead | undefined;
  const check = async (pool: pg.Pool): Promise<HeadDifference | undefined> =>
    newest && findDifference(pool, newest);
  return {
    check,
    async learn(pool, head) {
      const difference = await check(pool);
      if (!difference && (!newest || head.size > newest.size)) newest = head;
      return difference;
    },
  };
}
