import { isRealDay } from './calendar-date.ts';

/** A time zone of the IANA database, such as `Europe/Berlin`: which day an instant belongs to, and when a day begins. */
export interface TimeZone {
  readonly name: string;
  /** `YYYY-MM-DD`, of an instant in Unix milliseconds. */
  dayOf(ms: number): string;
  /** The first instant of a day `YYYY-MM-DD`, in Unix milliseconds. */
  startOf(day: string): number;
  /** RFC 3339 to the second with the offset; UTC in milliseconds. */
  textOf(ms: number): string;
}

const dayMs = 86_400_000;
/** Offsets change on quarters of an hour. */
const quarterMs = 900_000;

export const utc: TimeZone = {
  name: 'UTC',
  dayOf: (ms) => new Date(ms).toISOString().slice(0, 10),
  startOf: (day) => Date.parse(`${day}T00:00:00Z`),
  textOf: (ms) => new Date(ms).toISOString(),
};

/** The zone of that name; undefined if there is none. */
export function findTimeZone(name: string): TimeZone | undefined {
  if (name === utc.name) return utc;
  // an offset such as +01:00 has no summer time: its months would differ from those of the country
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(name)) return undefined;
  try {
    return zoneOf(
      new Intl.DateTimeFormat('en-US', {
        timeZone: name,
        calendar: 'gregory',
        hourCycle: 'h23',
        year: 'numeric',
        month: '2-digit',
        day: '2-digit',
        hour: '2-digit',
        minute: '2-digit',
        second: '2-digit',
      }),
      name,
    );
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function zoneOf(format: Intl.DateTimeFormat, name: string): TimeZone {
  // consecutive questions are mostly about the same quarter
  let known = { quarter: NaN, offsetMs: 0 };
  const offsetAt = (ms: number): number => {
    const quarter = Math.floor(ms / quarterMs);
    if (quarter !== known.quarter) known = { quarter, offsetMs: readOffset(format, quarter * quarterMs) };
    return known.offsetMs;
  };
  const dayOf = (ms: number): string => utc.dayOf(ms + offsetAt(ms));
  return {
    name,
    dayOf,
    startOf(day) {
      const wall = utc.startOf(day);
      // by the offset of the day before, or of the day after, if the clocks change between
      const starts = [wall - offsetAt(wall - dayMs), wall - offsetAt(wall + dayMs)];
      const first = Math.min(...starts.filter((ms) => dayOf(ms) === day));
      return Number.isFinite(first) ? first : wall - offsetAt(wall);
    },
    textOf: (ms) => new Date(ms + offsetAt(ms)).toISOString().slice(0, 19) + offsetText(offsetAt(ms)),
  };
}

function offsetText(offsetMs: number): string {
  const minutes = Math.abs(offsetMs) / 60_000;
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60].map((part) => String(part).padStart(2, '0'));
  return `${offsetMs < 0 ? '-' : '+'}${hours}:${rest}`;
}

/** How far the clocks of a zone are ahead of UTC at an instant. */
function readOffset(format: Intl.DateTimeFormat, ms: number): number {
  const part = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
  return Date.UTC(year, month - 1, day, hour, minute, second) - ms;
}

/** The first day of the next month, of a month `YYYY-MM`. */
export function nextMonth(month: string): string {
  const [year = 0, number = 0] = month.split('-').map(Number);
  return new Date(Date.UTC(year, number, 1)).toISOString().slice(0, 10);
}

/** Whether a text `YYYY-MM` is a month. */
export function isMonth(text: string): boolean {
  return /^\d{4}-\d\d$/.test(text) && isRealDay(`${text}-01`);
}
