import type pg from 'pg';
import type { ClosedPeriod, Periods } from '../rules/periods/periods.ts';
import {
  parseNamedPeriod,
  parsePeriod,
  type Period,
  type PeriodReading,
  instantText,
  parseInstant,
} from '../../base/values/period.ts';
import { findTimeZone, type TimeZone, utc } from '../../base/values/time-zone.ts';
import { readPeriods } from '../use-cases/periods/read-periods.ts';
import { ArgumentError } from '../../base/terminal/arguments.ts';

/** `--tz`: where days and months begin; UTC without it. Throws an ArgumentError if there is no such zone. */
export function readZone(name: string | undefined): TimeZone {
  const zone = name === undefined ? utc : findTimeZone(name);
  if (zone) return zone;
  throw new ArgumentError(`--tz is a time zone such as Europe/Berlin or UTC; there is no zone ${name}`);
}

/** `--from`, `--to` and `--tz`, of a period that is over at `nowMs`. Throws an ArgumentError with the reason. */
export function takePeriod(
  { from, to, tz }: Readonly<Partial<Record<'from' | 'to' | 'tz', string | undefined>>>,
  nowMs: number,
): Period {
  return periodOf(parsePeriod(from, to, nowMs, readZone(tz)));
}

/** The one period that a command names, such as `2026-10`. Throws an ArgumentError with the reason. */
export function takeNamedPeriod(
  positionals: readonly string[],
  tz: string | undefined,
  nowMs: number,
): Period {
  return periodOf(parseNamedPeriod(takeName(positionals), nowMs, readZone(tz)));
}

function periodOf(reading: PeriodReading): Period {
  if (reading.kind === 'period') return reading.period;
  throw new ArgumentError(reading.refusal.message);
}

function takeName([name]: readonly string[]): string {
  if (name !== undefined) return name;
  throw new ArgumentError('name one period: a month such as 2026-10, or its two ends, 2026-10-01/2026-11-01');
}

/** Throws an ArgumentError if the arguments of a command do not name one period: before the command opens anything. */
export function checkPeriodName(positionals: readonly string[]): void {
  periodOf(parseNamedPeriod(takeName(positionals), Infinity));
}

/**
 * The close that a command names, each in its own time zone. Throws an ArgumentError if the text does not name a period; undefined if no
 * close of that period holds.
 */
export function findClosed(periods: Periods, positionals: readonly string[]): ClosedPeriod | undefined {
  const name = takeName(positionals);
  periodOf(parseNamedPeriod(name, Infinity));
  return periods.standing.find(({ period }) => {
    const reading = parseNamedPeriod(name, Infinity, period.zone);
    return (
      reading.kind === 'period' &&
      reading.period.fromMs === period.fromMs &&
      reading.period.toMs === period.toMs
    );
  });
}

/** The close of the database that a command names; else the reason why there is none. */
export async function readClosed(
  pool: pg.Pool,
  positionals: readonly string[],
): Promise<
  | { readonly kind: 'closed'; readonly closed: ClosedPeriod }
  | { readonly kind: 'none'; readonly words: string }
> {
  const { periods } = await readPeriods(pool);
  const closed = findClosed(periods, positionals);
  return closed
    ? { kind: 'closed', closed }
    : {
        kind: 'none',
        words: `${positionals[0]} is not closed: \`tollbook period list\` shows those that are`,
      };
}

/** Which records a list shows, by the time of recording, and the time zone that it is shown in. */
export interface ListSpan {
  readonly zone: TimeZone;
  readonly fromMs: number | undefined;
  readonly toMs: number | undefined;
}

/** `--from`, `--to` and `--tz` of a list, each of which may be left out. Throws an ArgumentError if one is not valid. */
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
