import { z } from 'zod';
import type { Report } from './report.ts';
import { type ConfigOf, readTable } from './table.ts';
import { matching, wholeNumber } from './values.ts';

const label = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
const host = matching(
  new RegExp(String.raw`^(?:\*\.)?${label}(?:\.${label})*$`),
  'must be a host in lower case, such as "hooks.example", or "*.example" for those below it',
);

const callbacksShape = {
  /** The hosts that may be called; `*.` stands for any part before the rest. Absent: any public one. */
  allowed_hosts: z.array(host, 'must be an array of hosts').min(1, 'must name a host').optional(),
  /** How long after the end of a call its callback is tried. */
  give_up_after_secs: wholeNumber(60, 2_592_000).default(86_400),
} as const;

/** Whether and how clients are called once the end of a paid call is known. */
export type CallbacksConfig = ConfigOf<typeof callbacksShape>;

/** Reads `[callbacks]`; undefined where the table is missing, or after a report. */
export function readCallbacks(raw: unknown, report: Report): CallbacksConfig | undefined {
  return raw === undefined ? undefined : readTable(callbacksShape, raw, ['callbacks'], report).whole;
}
