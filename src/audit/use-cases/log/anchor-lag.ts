import type pg from 'pg';
import type { NoteSigner } from '../../../base/values/log/checkpoint.ts';
import type { Anchor } from '../../peers/anchors/anchor.ts';
import { type AnchorState, readAnchorState } from '../../store/log.ts';
import { currentSigner } from './anchors.ts';

/** Beyond the time between two checkpoints: an anchor that fails is tried again within it. */
const graceMs = 300_000;

/** How far an anchor is, and whether the operator has to look at it. */
export interface AnchorLag extends AnchorState {
  /** It lacks a head that is older than its interval and five minutes. Alerts, `/status` and metrics go by this. */
  readonly isLate: boolean;
}

/** How far these anchors are, by name. Any process may be the one that copies the checkpoints. */
export async function readAnchorLags(
  pool: pg.Pool,
  first: NoteSigner,
  anchors: readonly Pick<Anchor, 'name' | 'everyMs'>[],
): Promise<ReadonlyMap<string, AnchorLag>> {
  const { name: origin } = await currentSigner(pool, first);
  const lags = await Promise.all(
    anchors.map(async ({ name, everyMs }): Promise<[string, AnchorLag]> => {
      const state = await readAnchorState(pool, origin, name);
      return [name, { ...state, isLate: state.behindMs > everyMs + graceMs }];
    }),
  );
  return new Map(lags);
}
