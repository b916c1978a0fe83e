import { z } from 'zod';
import { readChainEvent } from '../values/triggers/chain-event.ts';
import type { Constants } from './constants.ts';
import type { Path } from './mistakes.ts';
import { rpcUrlOf } from './networks.ts';
import type { Reading } from './reading.ts';
import { type ConfigOf, isTable, readTable } from './table.ts';
import { address, jobIndex, network, oneOf, plainName, serviceId, wholeNumber } from './values.ts';

const mostAddresses = 100;

export const chainTriggerShape = {
  name: plainName.describe('Unique, in logs, metrics and alerts'),
  kind: oneOf(['chain']).describe('What calls the job'),
  service_id: serviceId.describe('Service of the called job'),
  job_index: jobIndex.describe('Its index in the service'),
  network: network.describe("The contracts' chain"),
  addresses: z
    .array(address, 'must be an array of addresses')
    .min(1, 'must have an address')
    .max(mostAddresses, `must have at most ${mostAddresses} addresses`)
    .describe('Contracts whose events trigger calls'),
  event: z.string('must be text').describe("The event's declaration in Solidity"),
  filters: z
    .unknown()
    .optional()
    .meta({ type: 'table of values by argument' })
    .describe('Required values of indexed arguments'),
  confirmations: wholeNumber(0, 10_000)
    .optional()
    .describe("Blocks above the event's; default: until it is final"),
  start_block: wholeNumber(0, Number.MAX_SAFE_INTEGER)
    .optional()
    .describe('First block to read; default: the next at the first start'),
} as const;

/** The events of contracts make calls. */
export interface ChainTriggerConfig
  extends ConfigOf<typeof chainTriggerShape>, Readonly<Constants['chainTrigger']> {
  /** Of the network. */
  readonly rpcUrl: string;
}

export async function readChainTrigger(
  raw: unknown,
  at: Path,
  reading: Reading,
): Promise<ChainTriggerConfig | undefined> {
  const { report } = reading;
  const { values, whole } = readTable(chainTriggerShape, raw, at, report);
  const { event, filters = {} } = values;
  const rpcUrl = rpcUrlOf(values.network, [...at, 'network'], reading);
  if (!isTable(filters)) {
    report.mistake([...at, 'filters'], 'must be a table: the name of an indexed argument, and its value');
    return undefined;
  }
  if (event === undefined) return undefined;
  const answer = readChainEvent(event, filters);
  if (answer.kind === 'event')
    return whole && rpcUrl !== undefined
      ? { ...whole, ...reading.constants.chainTrigger, rpcUrl }
      : undefined;
  report.mistake([...at, answer.at], answer.text);
  return undefined;
}
