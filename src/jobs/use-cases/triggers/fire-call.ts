import type { ChainTriggerConfig } from '../../../base/config/chain-trigger.ts';
import type { CronTriggerConfig } from '../../../base/config/cron-trigger.ts';
import type { ChainLog } from '../../../base/values/triggers/chain-log.ts';
import type { Caip2 } from '../../../base/values/primitives.ts';
import type { Fire } from './fire.ts';
import { type TriggerContext, triggerCall, type TriggerOrder } from './trigger-call.ts';

/** Records the firings of a trigger as calls of its job. A firing that is on record keeps the call of its first time. */
export function fireCalls(
  current: () => TriggerContext,
  trigger: CronTriggerConfig | ChainTriggerConfig,
): Fire {
  const { kind, name, serviceId, jobIndex } = trigger;
  const job = { serviceId, jobIndex };
  return async ({ id, body, log }) => {
    const place = log && trigger.kind === 'chain' ? placeOf(trigger.network, log) : undefined;
    const order = {
      kind,
      name,
      id,
      job,
      body: Buffer.from(body),
      contentType: 'application/json',
      log: place,
    };
    const result = await triggerCall(current(), order);
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
  return {
    network,
    block_number: String(blockNumber),
    block_hash: blockHash,
    transaction,
    log_index: logIndex,
  };
}
