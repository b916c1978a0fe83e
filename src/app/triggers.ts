import type { Config, TriggerConfig } from '../base/config/config.ts';
import type { ChainTriggerConfig, CronTriggerConfig } from '../base/config/triggers.ts';
import { createEventReader, type EventReader } from '../payments/peers/chain/event-reader.ts';
import { createLastKnown } from '../base/runtime/last-known.ts';
import { readTriggerProgress, type TriggerProgress } from '../calls/store/trigger-cursors.ts';
import type { ChainTrigger } from '../jobs/use-cases/triggers/chain-look.ts';
import { chainTriggerOf, cronTriggerOf, fireCalls } from '../jobs/use-cases/triggers/fire-call.ts';
import { createFiringCounts, type Fire } from '../jobs/use-cases/triggers/fire.ts';
import type { CronTrigger } from '../jobs/use-cases/triggers/fire-schedule.ts';
import {
  type FollowedTriggers,
  triggerConditions,
  triggerLags,
} from '../jobs/use-cases/triggers/progress.ts';
import type { TriggerContext } from '../jobs/use-cases/triggers/trigger-call.ts';
import { startChainFollower, startScheduleFirer, startTriggerWatch } from '../jobs/workers/triggers.ts';
import type { Loop } from '../ledger/workers/loop.ts';
import type { JobsContext } from '../jobs/use-cases/context.ts';
import { webhookTriggerRoutes } from '../jobs/http/triggers/webhook.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';
import { triggerFigures } from './metric-values.ts';

/** The triggers that requests fire. */
export function composeTriggers(
  { bodies }: Pick<FeatureParts, 'bodies'>,
  current: () => JobsContext,
): RunningFeature {
  return {
    async register(app) {
      await app.register(webhookTriggerRoutes(current, bodies));
    },
  };
}

/** Of one request to a chain. */
const timeoutMs = 10_000;

/** A trigger that a worker looks after; a request fires the others. */
type FollowedConfig = CronTriggerConfig | ChainTriggerConfig;

function isFollowed(trigger: TriggerConfig): trigger is FollowedConfig {
  return trigger.kind === 'cron' || trigger.kind === 'chain';
}

/** The triggers that fire at times and at events of chains. */
export function composeFollowedTriggers(
  { config, ledger, logger }: Pick<FeatureParts, 'config' | 'ledger' | 'logger'>,
  current: () => TriggerContext,
): RunningFeature {
  const { pool } = ledger;
  const { cron, chain, fires } = read(config, current);
  const readers = new Map<string, EventReader>();
  const counts = createFiringCounts();
  const known = createLastKnown<TriggerProgress>();
  const loops: Loop[] = [];
  const fireOf = ({ name }: CronTrigger | ChainTrigger): Fire => {
    const fire = fires.get(name);
    if (!fire) throw new Error(`the trigger ${name} is not configured`);
    return fire;
  };
  const readerOf = ({ name, terms }: ChainTrigger): EventReader => {
    const { network, chainId, rpcUrl } = terms;
    const reader = readers.get(name) ?? createEventReader({ network, chainId, rpcUrl, timeoutMs });
    readers.set(name, reader);
    return reader;
  };
  const parts = { pool, log: logger, counts, fireOf };

  return {
    startOwnLoops: () => void loops.push(startTriggerWatch({ pool, log: logger }, known)),
    startWorkers() {
      if (cron.length > 0) loops.push(startScheduleFirer({ ...parts, triggers: () => cron }));
      if (chain.length > 0) loops.push(startChainFollower({ ...parts, readerOf, triggers: () => chain }));
    },
    figures: () =>
      triggerFigures(known, counts, () => (known.value ? triggerLags({ cron, chain }, known.value) : [])),
    conditions: async () => triggerConditions(triggerLags({ cron, chain }, await readTriggerProgress(pool))),
    async finish() {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
    async stop() {
      await Promise.all([...readers.values()].map((reader) => reader.close()));
    },
  };
}

interface Followed extends FollowedTriggers {
  /** By the trigger's name. */
  readonly fires: ReadonlyMap<string, Fire>;
}

function read({ triggers }: Config, current: () => TriggerContext): Followed {
  const followed = triggers.filter(isFollowed);
  return {
    cron: followed.flatMap((trigger) => (trigger.kind === 'cron' ? cronTriggerOf(trigger) : [])),
    chain: followed.flatMap((trigger) => (trigger.kind === 'chain' ? chainTriggerOf(trigger) : [])),
    fires: new Map(followed.map((trigger) => [trigger.name, fireCalls(current, trigger)])),
  };
}
