import type { RetentionConfig } from '../../base/config/config.ts';
import { type PrunedKind, prunedKinds } from '../../ledger/rules/retention-events.ts';
import { pruneMails } from '../../base/peers/mail/mailer.ts';
import type pg from 'pg';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { pullDueTimes } from '../../calls/store/calls.ts';
import {
  beginPruneRound,
  endPruneRound,
  forgetPruneRound,
  notePruned,
  pruneRows,
  pruneShortLived,
} from '../../ledger/store/pruning.ts';
import { eraseUser } from '../../accounts/use-cases/erase-user.ts';
import { findUnconfirmedUsers } from '../../accounts/store/user-erasure.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';
import type { Ledger } from '../../ledger/store/ledger.ts';

const roundEverySecs = 600;
const pollMs = 60_000;
const batchSize = 200;
const usersAtOnce = 20;
const daySecs = 86_400;
/** A body has no use once its call has ended; within the hour its runner may still ask again. */
const bodySecs = 3_600;
/** The only rows with addresses of clients. The longest limit counts by UTC day, so that a row is needed for less than two. */
const rateLimitSecs = 2 * daySecs;
/** What an operator looks at after a failure (tasks, spends and payouts that failed, alerts, replaced tree heads): a month of it. */
const inquirySecs = 30 * daySecs;

interface Context extends Ledger {
  readonly log: Pick<OperatorLog, 'error'>;
}

/**
 * Deletes rows whose configured life has ended, batch by batch, in rounds of which one gateway begins each. A round that deleted
 * something leaves one event.
 */
export function startCleaner(context: Context, retention: RetentionConfig): Loop {
  const lives = livesOf(retention);
  let isUnderWay = false;
  return startLoop(
    async () => {
      isUnderWay ||= await beginPruneRound(context.pool, roundEverySecs);
      if (!isUnderWay) return false;
      const isMore = [
        await pruneBatches(context.pool, lives),
        await eraseUnconfirmed(context, retention.personalDays * daySecs),
      ];
      if (isMore.includes(true)) return true;
      await recordPruned(context);
      isUnderWay = false;
    },
    { pollMs, log: context.log, failureMessage: 'old rows could not be pruned' },
  );
}

/** Deletes mails that no program has taken: files of this machine, which no other gateway may see. The next round records them. */
export function startMailCleaner(
  { pool, log }: Pick<Context, 'pool' | 'log'>,
  dir: string,
  retention: RetentionConfig,
): Loop {
  const { mails: lifeSecs } = livesOf(retention);
  return startLoop(
    async () => {
      const deleted = await pruneMails(dir, Date.now() - lifeSecs * 1_000);
      if (deleted > 0) await notePruned(pool, 'mails', deleted, lifeSecs);
    },
    {
      pollMs: roundEverySecs * 1_000,
      log,
      failureMessage: 'old mails could not be deleted',
      fields: { dir },
    },
  );
}

/** Makes rows due that were written before the database's clock was set back. */
export function startDueTimes({ pool, log }: Pick<Context, 'pool' | 'log'>): Loop {
  const failureMessage = 'due times could not be compared with the clock';
  return startLoop(async () => (await pullDueTimes(pool, batchSize)) > 0, { pollMs, log, failureMessage });
}

type Lives = Readonly<Record<PrunedKind, number>>;

/** In seconds. The database keeps each kind for its least life in any case (`least_life`). */
function livesOf({ resultsDays, recordsDays, personalDays }: RetentionConfig): Lives {
  return {
    call_results: resultsDays * daySecs,
    callbacks: resultsDays * daySecs,
    refund_reasons: resultsDays * daySecs,
    request_ids: recordsDays * daySecs,
    operator_tokens: recordsDays * daySecs,
    api_keys: recordsDays * daySecs,
    mails: personalDays * daySecs,
    call_bodies: bodySecs,
    rate_limits: rateLimitSecs,
    sign_in_links: daySecs,
    tree_heads: inquirySecs,
    follow_ups: inquirySecs,
    failed_spends: inquirySecs,
    failed_payouts: inquirySecs,
    alerts: inquirySecs,
    alert_messages: inquirySecs,
  };
}

/** One batch of each kind; returns whether there may be more. */
async function pruneBatches(pool: pg.Pool, lives: Lives): Promise<boolean> {
  let hasMore = (await pruneShortLived(pool, batchSize)) >= batchSize;
  for (const kind of prunedKinds) {
    if (kind === 'mails') continue;
    if ((await pruneRows(pool, kind, lives[kind], batchSize)) >= batchSize) hasMore = true;
  }
  return hasMore;
}

/** People who signed up and never confirmed their address; returns whether there may be more. */
async function eraseUnconfirmed(context: Context, lifeSecs: number): Promise<boolean> {
  const userIds = await findUnconfirmedUsers(context.pool, lifeSecs, usersAtOnce);
  for (const who of userIds)
    await eraseUser(context, { who, operator: 'retention', forfeits: false, withResults: false });
  return userIds.length === usersAtOnce;
}

/** Records each ended round once, also one whose gateway stopped before it could. */
async function recordPruned({ pool, lane }: Context): Promise<void> {
  for (const [round, sums] of await endPruneRound(pool)) {
    const pruned = sums.map(({ kind, count, before }) => ({
      kind,
      count,
      before: Math.floor(before.getTime() / 1_000),
    }));
    // another gateway may have recorded it already: then the expected version does not match
    await lane.append({
      stream: `retention:${round}`,
      expect: 0,
      events: [{ type: 'data_pruned', data: { pruned } }],
    });
    await forgetPruneRound(pool, round);
  }
}
