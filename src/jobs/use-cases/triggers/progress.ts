import { chainTermsHash, cronTermsHash } from '../../../base/values/triggers/trigger-terms.ts';
import type { AlertCondition } from '../../../base/values/alert-condition.ts';
import type { TriggerProgress } from '../../../calls/store/trigger-cursors.ts';
import type { ChainTrigger } from './chain-look.ts';
import type { CronTrigger } from './fire-schedule.ts';

/** How much a trigger lags the times or events that it should have fired at. */
export interface TriggerLag {
  readonly name: string;
  readonly kind: 'cron' | 'chain';
  /** Of a schedule: how long ago the oldest time was that has not fired. Of a chain: how old the block is up to which it was read. */
  readonly lagSecs: number;
  /** Blocks that count and are not read yet. */
  readonly blocks: number | undefined;
  /** The block up to which the chain was read. */
  readonly block: bigint | undefined;
  /** For how long no look has ended well. */
  readonly troubleSecs: number;
  readonly problem: string | undefined;
  readonly isBehind: boolean;
}

/** The triggers of a configuration that have a cursor. */
export interface FollowedTriggers {
  readonly cron: readonly CronTrigger[];
  readonly chain: readonly ChainTrigger[];
}

/** A time fires a moment after it has come; this much later the operator is alerted. */
const lateAfterSecs = 120;
/** For this long a chain may not answer before the operator is alerted. */
const troubleAfterSecs = 300;

/** How far each trigger is. One that no gateway has seen yet is left out. */
export function triggerLags({ cron, chain }: FollowedTriggers, progress: TriggerProgress): TriggerLag[] {
  return [
    ...cron.flatMap((trigger) => cronLag(trigger, progress) ?? []),
    ...chain.flatMap((trigger) => chainLag(trigger, progress) ?? []),
  ];
}

function cronLag(
  { name, terms }: CronTrigger,
  { schedules, nowMs }: TriggerProgress,
): TriggerLag | undefined {
  const hash = cronTermsHash(terms);
  const own = schedules.find((one) => one.trigger === name && one.terms.equals(hash));
  if (!own) return undefined;
  const nextMs = terms.schedule.next(own.handledUntilMs) ?? Infinity;
  const lagSecs = Math.max(0, nowMs - nextMs) / 1_000;
  const none = { blocks: undefined, block: undefined, problem: undefined };
  return { name, kind: 'cron', lagSecs, troubleSecs: lagSecs, ...none, isBehind: lagSecs > lateAfterSecs };
}

function chainLag({ name, terms }: ChainTrigger, { chains, nowMs }: TriggerProgress): TriggerLag | undefined {
  const hash = chainTermsHash(terms);
  const own = chains.find(
    (one) => one.trigger === name && one.network === terms.network && one.terms.equals(hash),
  );
  if (!own) return undefined;
  const { cursor, head, problem } = own;
  const troubleSecs = Math.max(0, nowMs - own.okAtMs) / 1_000;
  const lagSecs = cursor ? Math.max(0, nowMs / 1_000 - cursor.timestampSecs) : 0;
  const blocks = cursor && head !== undefined ? Number(head - cursor.number) : 0;
  const isBehind =
    problem === 'final_block_replaced' || troubleSecs > troubleAfterSecs || lagSecs > terms.behindAfterSecs;
  const read = { blocks: Math.max(0, blocks), block: cursor?.number };
  return { name, kind: 'chain', lagSecs, ...read, troubleSecs, problem, isBehind };
}

export function triggerConditions(lags: readonly TriggerLag[]): AlertCondition[] {
  return lags
    .filter(({ isBehind }) => isBehind)
    .map(({ name, kind, lagSecs, blocks, block, problem }) => {
      const why = problem === undefined ? '' : ` (${problem})`;
      const text =
        kind === 'cron'
          ? `The trigger ${name} has not fired for a time that is ${Math.round(lagSecs)} seconds old: no process could record its call.`
          : `The trigger ${name} has read its chain up to block ${block ?? 'none'}, which is ${Math.round(lagSecs)} seconds old${why}: ` +
            'events after it make no calls until it continues; none is lost.';
      const details = { lag_secs: Math.round(lagSecs), blocks: blocks ?? null, problem: problem ?? null };
      return { kind: 'trigger_behind', subject: name, text, details };
    });
}
