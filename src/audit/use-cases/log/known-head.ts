import type pg from 'pg';
import type { TreeHead } from '../../../base/values/log/checkpoint.ts';
import { findDifference, type HeadDifference } from './history.ts';

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
