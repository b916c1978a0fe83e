import type { z } from 'zod';
import type { Path } from './mistakes.ts';
import type { Report } from './report.ts';
import { suggest } from './suggest.ts';

/** The keys a TOML table may have, each with its own schema. */
export type Shape = Readonly<Record<string, z.ZodType>>;
type Values<S extends Shape> = { readonly [K in keyof S]: z.output<S[K]> };

/**
 * A table read key by key. zod's own objects skip their cross-checks when one key fails, which would hide
 * mistakes until the next run; so rules over several keys look at `values`, and only `whole` is built from.
 */
export interface Table<S extends Shape> {
  readonly at: Path;
  readonly values: Partial<Values<S>>;
  /** All values; undefined if any key was wrong. */
  readonly whole: Values<S> | undefined;
  /** Whether the file names the key, rightly or wrongly. */
  readonly names: (key: keyof S & string) => boolean;
}

/** Reads a table, reporting wrong, missing and unknown keys. */
export function readTable<S extends Shape>(shape: S, raw: unknown, at: Path, report: Report): Table<S> {
  if (!isTable(raw)) {
    report.mistake(at, 'must be a table');
    return { at, values: {}, whole: undefined, names: () => false };
  }
  const values: Record<string, unknown> = {};
  let isWhole = true;
  for (const [key, schema] of Object.entries(shape)) {
    const read = readValue(schema, raw[key], [...at, key], report);
    if (read === undefined) isWhole = false;
    else values[key] = read.value;
  }
  reportUnknownKeys(Object.keys(shape), raw, at, report);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each value came out of its key's schema above
  const read = values as Values<S>;
  return {
    at,
    values: read,
    whole: isWhole ? read : undefined,
    names: (key) => raw[key] !== undefined,
  };
}

/** Reads `[[name]]`: one table an element; none when the key is absent. */
export function readTables<S extends Shape>(shape: S, raw: unknown, at: Path, report: Report): Table<S>[] {
  if (raw === undefined) return [];
  if (!Array.isArray(raw)) {
    report.mistake(at, `must be an array of tables: [[${String(at.at(-1))}]]`);
    return [];
  }
  return raw.map((element: unknown, index) => readTable(shape, element, [...at, index], report));
}

/** Reads one value; undefined (and a report) if it is wrong. The value itself may be an absent option. */
export function readValue<T>(
  schema: z.ZodType<T>,
  raw: unknown,
  at: Path,
  report: Report,
): { readonly value: T } | undefined {
  const result = schema.safeParse(raw);
  if (result.success) return { value: result.data };
  if (raw === undefined) report.mistake(at, 'is missing');
  else
    for (const issue of result.error.issues) report.mistake([...at, ...textKeys(issue.path)], issue.message);
  return undefined;
}

/** Whether a parsed TOML value is a table and not an array, a date or a scalar. */
export function isTable(raw: unknown): raw is Readonly<Record<string, unknown>> {
  return typeof raw === 'object' && raw !== null && !Array.isArray(raw) && !(raw instanceof Date);
}

function reportUnknownKeys(known: readonly string[], raw: object, at: Path, report: Report): void {
  for (const key of Object.keys(raw)) {
    if (known.includes(key)) continue;
    const meant = suggest(key, known);
    report.mistake(
      [...at, key],
      `is not a known key${meant === undefined ? '' : `; did you mean ${meant}?`}`,
    );
  }
}

function textKeys(path: readonly PropertyKey[]): Path {
  return path.map((part) => (typeof part === 'symbol' ? String(part) : part));
}
