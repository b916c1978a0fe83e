import { instantText, parseInstant } from '../../base/values/period.ts';
import type { TimeZone } from '../../base/values/time-zone.ts';
import { ArgumentError, readOptions } from '../../base/terminal/arguments.ts';
import { readZone } from './period-choice.ts';
import { moneyCommands } from './money-descriptions.ts';

/** Which records a list shows, by the time of recording, and the time zone that it is shown in. */
export interface ListSpan {
  readonly zone: TimeZone;
  readonly fromMs: number | undefined;
  readonly toMs: number | undefined;
}

/** `--from`, `--to` and `--tz` of a list, each of which may be left out. Throws an ArgumentError where one is not valid. */
export function readListSpan(args: readonly string[]): ListSpan {
  const { values } = readOptions(moneyCommands['sweeps list'], args);
  return readSpan(values);
}

/** The same of options that are read. */
export function readSpan(
  values: Readonly<Partial<Record<'from' | 'to' | 'tz', string | undefined>>>,
): ListSpan {
  const zone = readZone(values.tz);
  const [fromMs, toMs] = (['from', 'to'] as const).map((end) => {
    const text = values[end];
    const ms = text === undefined ? undefined : parseInstant(text, zone);
    if (text !== undefined && ms === undefined)
      throw new ArgumentError(`--${end} is a date or time: 2026-11, 2026-11-01 or 2026-11-01T08:00:00Z`);
    return ms;
  });
  if (fromMs !== undefined && fromMs > Date.now())
    throw new ArgumentError(`--from is in the future: now it is ${instantText(Date.now())}`);
  if (fromMs !== undefined && toMs !== undefined && fromMs >= toMs)
    throw new ArgumentError('--to is after --from, and not part of what is listed');
  return { zone, fromMs, toMs };
}
