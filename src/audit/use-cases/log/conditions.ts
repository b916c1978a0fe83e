import type pg from 'pg';
import type { AlertCondition } from '../../../base/values/alert-condition.ts';
import type { NoteSigner } from '../../../base/values/log/checkpoint.ts';
import type { Anchor } from '../../peers/anchors/anchor.ts';
import type { Funds } from '../../../payments/peers/chain/transaction-sender.ts';
import { type AnchorLag, readAnchorLags } from './anchor-lag.ts';

/** Ether for fewer heads than this is too little. */
const headsAhead = 10n;
const fundsEveryMs = 60_000;

/** What the operator is alerted about: the anchors of a log. */
export interface AnchorConditions {
  look(): Promise<AlertCondition[]>;
  /** The ether of their keys, as their chains last said, by the anchor's name. */
  readonly funds: ReadonlyMap<string, Funds>;
}

/** Looks for conditions of the log's anchors that alert the operator; the ether of their keys at most once a minute. */
export function createAnchorConditions(
  pool: pg.Pool,
  first: NoteSigner,
  anchors: readonly Anchor[],
): AnchorConditions {
  const known = new Map<string, Funds>();
  let fundsMs = -fundsEveryMs;

  const lookAtFunds = async ({ name, funds }: Anchor): Promise<void> => {
    const answer = await funds?.();
    // an unreachable chain changes nothing
    if (answer?.kind === 'answer') known.set(name, answer.value);
  };
  const isPoor = ({ name }: Anchor): boolean => {
    const funds = known.get(name);
    return funds !== undefined && funds.balanceWei < funds.costWei * headsAhead;
  };

  const look = async (): Promise<AlertCondition[]> => {
    if (anchors.length === 0) return [];
    const nowMs = performance.now();
    // after this look: a slow chain must not delay the other conditions
    if (nowMs - fundsMs >= fundsEveryMs) {
      fundsMs = nowMs;
      for (const anchor of anchors) void lookAtFunds(anchor);
    }
    const lags = await readAnchorLags(pool, first, anchors);
    return anchors.flatMap((anchor) => [
      ...behind(anchor, lags.get(anchor.name)),
      ...(isPoor(anchor) ? [lowGas(anchor)] : []),
    ]);
  };
  return { look, funds: known };
}

function behind({ name, place }: Anchor, lag: AnchorLag | undefined): AlertCondition[] {
  if (!lag?.isLate) return [];
  const secs = Math.round(lag.behindMs / 1_000);
  const text = `The anchor ${name} (${place}) lacks checkpoints of the last ${secs} seconds: a rewritten ledger would not be noticed there.`;
  return [{ kind: 'anchors_behind', subject: name, text, details: { lag_secs: secs } }];
}

function lowGas({ name, place }: Anchor): AlertCondition {
  const text = `The key of the anchor ${name} (${place}) has ether for fewer than ${headsAhead} checkpoints.`;
  return { kind: 'low_gas', subject: `anchor ${name}`, text };
}
