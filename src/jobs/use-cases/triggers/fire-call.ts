import type { ChainTriggerConfig, CronTriggerConfig } from '../../../base/config/triggers.ts';
import type { ChainLog } from '../../../base/values/triggers/chain-log.ts';
import { type Caip2, chainIdOf } from '../../../base/values/primitives.ts';
import type { Fire } from './fire.ts';
import { type TriggerContext, triggerCall, type TriggerOrder } from './trigger-call.ts';
import { readChainEvent } from '../../../base/values/triggers/chain-event.ts';
import { readSchedule } from '../../../base/values/triggers/cron-schedule.ts';
import type { ChainTrigger } from './chain-look.ts';
import type { CronTrigger } from './fire-schedule.ts';

/** Records the firings of a trigger as calls of its job. A firing that is on record keeps the call of its first time. */
export function fireCalls(
  current: () => TriggerContext,
  trigger: CronTriggerConfig | ChainTriggerConfig,
): Fire {
  const { kind, name, serviceId, jobIndex } = trigger;
  const job = { serviceId, jobIndex };
  return async ({ id, body, log }) => {
    const place = log && trigger.kind === 'chain' ? placeOf(trigger.network, log) : undefined;
    const content = { body: Buffer.from(body), contentType: 'application/json' };
    const result = await triggerCall(current(), { kind, name, id, job, ...content, log: place });
    switch (result.kind) {
      case 'triggered':
        return 'recorded';
      case 'repeated':
      // after a reorg the same event may be in another block
      case 'conflict':
        return 'known';
      case 'busy':
        return 'full';
    }
  };
}

function placeOf(network: Caip2, log: ChainLog): NonNullable<TriggerOrder['log']> {
  const { blockNumber, blockHash, transaction, logIndex } = log;
  const block = { block_number: String(blockNumber), block_hash: blockHash };
  return { network, ...block, transaction, log_index: logIndex };
}

/** The schedule of a configuration, which has checked it. */
export function cronTriggerOf(config: CronTriggerConfig): CronTrigger {
  const { name, schedule: text, timeZone, missed, missedMost, missedAfterSecs } = config;
  const answer = readSchedule(text, timeZone);
  if (answer.kind !== 'schedule') throw new Error(`the schedule of trigger ${name} ${answer.text}`);
  const { schedule } = answer;
  return { name, terms: { text, timeZone, schedule, missed, missedMost, missedAfterSecs } };
}

/** What a configuration says of the events of a trigger, which it has checked. */
export function chainTriggerOf(config: ChainTriggerConfig): ChainTrigger {
  const { name, network, rpcUrl, addresses, confirmations, startBlock, pollSecs, behindAfterSecs } = config;
  const answer = readChainEvent(config.event, (config.filters ?? {}) as Readonly<Record<string, unknown>>);
  if (answer.kind !== 'event') throw new Error(`the event of trigger ${name} ${answer.text}`);
  const chainId = chainIdOf(network);
  if (chainId === undefined) throw new Error(`trigger ${name} has no chain`);
  return {
    name,
    terms: {
      network,
      chainId,
      rpcUrl,
      addresses,
      event: answer.event,
      finality: confirmations === undefined ? 'final' : { confirmations },
      startBlock: startBlock === undefined ? undefined : BigInt(startBlock),
      pollSecs,
      behindAfterSecs,
    },
  };
}
