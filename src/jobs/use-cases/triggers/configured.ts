import type { ChainTriggerConfig } from '../../../base/config/chain-trigger.ts';
import type { CronTriggerConfig } from '../../../base/config/cron-trigger.ts';
import { readChainEvent } from '../../../base/values/triggers/chain-event.ts';
import { readSchedule } from '../../../base/values/triggers/cron-schedule.ts';
import { chainIdOf } from '../../../base/values/primitives.ts';
import type { ChainTrigger } from './chain-look.ts';
import type { CronTrigger } from './fire-schedule.ts';

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
  if (chainId === undefined || rpcUrl === undefined) throw new Error(`trigger ${name} has no chain`);
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
