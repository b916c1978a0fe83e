import type { JsonValue } from '../../../base/values/triggers/chain-event.ts';
import { type ChainLog, nameLogs } from '../../../base/values/triggers/chain-log.ts';
import type { ChainLook, ChainTrigger } from './chain-look.ts';

/** `full`: the ledger takes no further call now. `stopped`: this process ends, or another one looks. */
export type FiredLogs = 'fired' | 'full' | 'stopped';

/** Fires at each log in order. Those before the one at which it ends are on record. */
export async function fireLogs(look: ChainLook, logs: readonly ChainLog[]): Promise<FiredLogs> {
  const { trigger, ahead, counts, fire, isStopping } = look;
  for (const { id, log } of nameLogs(trigger.terms.network, logs)) {
    if (ahead.fired.has(id)) continue;
    const args = trigger.terms.event.decode(log);
    if (!args) {
      counts.add(trigger.name, 'foreign');
      continue;
    }
    if (isStopping()) return 'stopped';
    const answer = await fire({ id, body: bodyOf(trigger, log, args), log });
    counts.add(trigger.name, answer);
    if (answer === 'full') return 'full';
    ahead.fired.add(id);
  }
  return 'fired';
}

function bodyOf(
  { name, terms }: ChainTrigger,
  log: ChainLog,
  args: Readonly<Record<string, JsonValue>>,
): string {
  return JSON.stringify({
    trigger: name,
    network: terms.network,
    address: log.address,
    event: terms.event.signature,
    args,
    block_number: String(log.blockNumber),
    block_hash: log.blockHash,
    transaction: log.transaction,
    log_index: log.logIndex,
  });
}
