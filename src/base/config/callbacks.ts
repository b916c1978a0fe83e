import { z } from 'zod';
import type { Constants } from './constants.ts';
import type { Reading } from './reading.ts';
import { type ConfigOf, readTable } from './table.ts';
import { matching } from './values.ts';

const label = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
const host = matching(
  new RegExp(String.raw`^(?:\*\.)?${label}(?:\.${label})*$`),
  'must be a host in lower case, such as "hooks.example", or "*.example" for those below it',
);

export const callbacksShape = {
  allowed_hosts: z
    .array(host, 'must be an array of hosts')
    .min(1, 'must name a host')
    .optional()
    .describe('Hosts that may be called; default: any public host'),
} as const;

/** Whether and how clients are called once the end of a paid call is known. */
export type CallbacksConfig = ConfigOf<typeof callbacksShape> & Constants['callbacks'];

/** Reads `[callbacks]`; undefined if the table is missing, or after a report. */
export function readCallbacks(raw: unknown, { report, constants }: Reading): CallbacksConfig | undefined {
  if (raw === undefined) return undefined;
  const { whole } = readTable(callbacksShape, raw, ['callbacks'], report);
  return whole && { ...whole, ...constants.callbacks };
}
