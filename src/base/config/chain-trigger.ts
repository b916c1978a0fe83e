import { z } from 'zod';
import { readChainEvent } from '../values/triggers/chain-event.ts';
import type { Caip2 } from '../values/primitives.ts';
import type { Constants } from './constants.ts';
import type { Path } from './mistakes.ts';
import type { Reading } from './reading.ts';
import type { Report } from './report.ts';
import { type ConfigOf, isTable, readTable } from './table.ts';
import { rpcUrl } from './urls.ts';
import { address, jobIndex, network, oneOf, plainName, serviceId, wholeNumber } from './values.ts';

const mostAddresses = 100;

export const chainTriggerShape = {
  name: plainName.describe('The name in logs, metrics and alerts: unique among triggers'),
  kind: oneOf(['chain']).describe('What calls the job'),
  service_id: serviceId.describe('The service of the job that is called'),
  job_index: jobIndex.describe('The job of the service'),
  network: network.describe('The chain of the contracts'),
  rpc_url: rpcUrl.optional().describe('Default: that of the network in `[[networks]]`'),
  addresses: z
    .array(address, 'must be an array of addresses')
    .min(1, 'must have an address')
    .max(mostAddresses, `must have at most ${mostAddresses} addresses`)
    .describe('The contracts whose events count'),
  event: z.string('must be text').describe('As Solidity declares it'),
  filters: z
    .unknown()
    .optional()
    .meta({ type: 'table of values by argument' })
    .describe('The values that are wanted of indexed arguments'),
  confirmations: wholeNumber(0, 10_000)
    .optional()
    .describe('How many blocks are above the block of an event; left out, its block is final'),
  start_block: wholeNumber(0, Number.MAX_SAFE_INTEGER)
    .optional()
    .describe('The first block that counts; left out, the one after the last block at the first start'),
  behind_after_secs: wholeNumber(10, 2_592_000)
    .default(3_600)
    .describe('The operator is alerted where the last block that was read is older'),
} as const;

/** The events of contracts make calls. Its RPC is known once `withRpcUrls` has found it. */
export type ChainTriggerConfig = ConfigOf<typeof chainTriggerShape> & Constants['chainTrigger'];

export async function readChainTrigger(
  raw: unknown,
  at: Path,
  { report, constants }: Reading,
): Promise<ChainTriggerConfig | undefined> {
  const { values, whole } = readTable(chainTriggerShape, raw, at, report);
  const { event, filters = {} } = values;
  if (!isTable(filters)) {
    report.mistake([...at, 'filters'], 'must be a table: the name of an indexed argument, and its value');
    return undefined;
  }
  if (event === undefined) return undefined;
  const answer = readChainEvent(event, filters);
  if (answer.kind === 'event') return whole && { ...whole, ...constants.chainTrigger };
  report.mistake([...at, answer.at], answer.text);
  return undefined;
}

/** The RPC of a trigger's network. That there is none is reported. */
export function chainTriggerRpcUrl(
  trigger: ChainTriggerConfig,
  known: ReadonlyMap<Caip2, { readonly rpcUrl: string }>,
  at: Path,
  report: Report,
): string | undefined {
  const url = trigger.rpcUrl ?? known.get(trigger.network)?.rpcUrl;
  if (url === undefined)
    report.mistake([...at, 'rpc_url'], `is missing: [[networks]] has none for ${trigger.network}`);
  return url;
}
