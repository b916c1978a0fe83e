import { isRealDay } from './calendar-date.ts';
import { isMonth, nextMonth, type TimeZone, utc } from './time-zone.ts';

/** A span of time: `fromMs` inclusive, `toMs` exclusive, both Unix milliseconds. */
export interface Period {
  readonly fromMs: number;
  readonly toMs: number;
  /** Where its days are counted; UTC if absent. */
  readonly zone?: TimeZone;
}

export type PeriodRefusalCode =
  | 'half_open'
  | 'not_an_instant'
  | 'not_a_period'
  | 'reversed'
  | 'empty'
  | 'in_the_future'
  | 'not_over';

/** Why two texts are not a period. `message` is for the person who typed them. */
export interface PeriodRefusal {
  readonly code: PeriodRefusalCode;
  readonly message: string;
}

export type PeriodReading =
  | { readonly kind: 'period'; readonly period: Period }
  | { readonly kind: 'refusal'; readonly refusal: PeriodRefusal };

/**
 * Reads `--from` and `--to`: `2026-11` (the month's first instant), `2026-11-01` (midnight), both in the zone, or RFC 3339 to the
 * millisecond. The period must be over at `nowMs`, since the books of an unfinished one would change; `Infinity` skips this
 * check.
 */
export function parsePeriod(
  from: string | undefined,
  to: string | undefined,
  nowMs: number,
  zone = utc,
): PeriodReading {
  if (from === undefined || to === undefined)
    return refusal(
      'half_open',
      `--${from === undefined ? 'from' : 'to'} is missing: a period needs both ends`,
    );
  const fromMs = parseInstant(from, zone);
  if (fromMs === undefined) return notAnInstant('from', from);
  const toMs = parseInstant(to, zone);
  if (toMs === undefined) return notAnInstant('to', to);
  const wrong = wrongOrder(fromMs, toMs, zone) ?? tooEarly({ fromMs, toMs }, nowMs);
  return wrong ? { kind: 'refusal', refusal: wrong } : { kind: 'period', period: inZone(fromMs, toMs, zone) };
}

/** Reads a period by its name: a month `2026-11`, or its two ends, as `parsePeriod` takes them, with a slash between. */
export function parseNamedPeriod(text: string, nowMs: number, zone = utc): PeriodReading {
  if (isMonth(text)) return parsePeriod(text, nextMonth(text), nowMs, zone);
  const ends = text.split('/');
  if (ends.length === 2) return parsePeriod(ends[0], ends[1], nowMs, zone);
  const forms = '2026-11, or its two ends: 2026-11-01/2026-12-01';
  return refusal(
    'not_a_period',
    `${JSON.stringify(text.slice(0, 60))} is not a period: name a month, ${forms}`,
  );
}

/** The shortest text that `parseNamedPeriod` reads as this period. */
export function periodName({ fromMs, toMs, zone = utc }: Period): string {
  const [from, to] = [shortInstant(fromMs, zone), shortInstant(toMs, zone)];
  const month = from.slice(0, 7);
  return from.length === 10 && oneMonth.test(from) && to === nextMonth(month) ? month : `${from}/${to}`;
}

/** The ends of a period as words, with the zone if it is not UTC. */
export function spanText({ fromMs, toMs, zone = utc }: Period): string {
  const span = `from ${shortInstant(fromMs, zone)} up to but without ${shortInstant(toMs, zone)}`;
  return zone === utc ? span : `${span} in ${zone.name}`;
}

function inZone(fromMs: number, toMs: number, zone: TimeZone): Period {
  return zone === utc ? { fromMs, toMs } : { fromMs, toMs, zone };
}

/** Unix milliseconds of a month, a day or an RFC 3339 time; undefined for any other text. */
export function parseInstant(text: string, zone = utc): number | undefined {
  const parts = instant.exec(text);
  if (!parts) return undefined;
  const [, month = '', day = '-01', time] = parts;
  if (!isRealDay(month + day)) return undefined;
  const ms = time === undefined ? zone.startOf(month + day) : Date.parse(month + day + time.toUpperCase());
  return Number.isNaN(ms) ? undefined : ms;
}

/** RFC 3339 UTC in milliseconds, as the ledger writes times. */
export function instantText(ms: number): string {
  return new Date(ms).toISOString();
}

/** The shortest text that `parsePeriod` reads as this instant: a day if it is the first of one in the zone. */
export function shortInstant(ms: number, zone = utc): string {
  const day = zone.dayOf(ms);
  return zone.startOf(day) === ms ? day : instantText(ms);
}

const instant =
  /^(\d{4}-\d\d)(?:(-\d\d)([Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,3})?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d))?)?$/;

const oneMonth = /-01$/;

function refusal(code: PeriodRefusalCode, message: string): PeriodReading {
  return { kind: 'refusal', refusal: { code, message } };
}

function notAnInstant(end: 'from' | 'to', text: string): PeriodReading {
  const forms = '2026-11, 2026-11-01 or 2026-11-01T08:00:00Z';
  return refusal(
    'not_an_instant',
    `--${end} ${JSON.stringify(text.slice(0, 40))} is not a date or time: use ${forms}`,
  );
}

function wrongOrder(fromMs: number, toMs: number, zone: TimeZone): PeriodRefusal | undefined {
  if (fromMs === toMs) return { code: 'empty', message: `the period is empty: ${emptyHint(fromMs, zone)}` };
  if (fromMs < toMs) return undefined;
  const [from, to] = [shortInstant(fromMs, zone), shortInstant(toMs, zone)];
  return { code: 'reversed', message: `the period is reversed: --from ${from} is after --to ${to}` };
}

function emptyHint(ms: number, zone: TimeZone): string {
  const text = shortInstant(ms, zone);
  const why = `--to ${text} is not part of it`;
  if (text.length !== 10 || !oneMonth.test(text)) return why;
  const month = text.slice(0, 7);
  return `${why}, so the month ${month} ends with --to ${nextMonth(month).slice(0, 7)}`;
}

function tooEarly({ fromMs, toMs }: Period, nowMs: number): PeriodRefusal | undefined {
  if (toMs <= nowMs) return undefined;
  const now = `now it is ${instantText(nowMs)}`;
  if (fromMs >= nowMs)
    return {
      code: 'in_the_future',
      message: `the period is in the future: it begins at ${instantText(fromMs)}, ${now}`,
    };
  return {
    code: 'not_over',
    message: `the period is not over: it ends at ${instantText(toMs)}, ${now}; choose a --to in the past`,
  };
}
