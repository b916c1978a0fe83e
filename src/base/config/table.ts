import type { z } from 'zod';
import type { Path, Report } from './mistakes.ts';
import { suggest } from './suggest.ts';
import { plainHttpWarning } from './hosts.ts';
import { SecretSources } from './secret-source.ts';

/**
 * The keys of a TOML table. A key is declared once: its name, its schema with the default, and whether a reload can change it
 * (`reloadable`). Its name in the frozen configuration is the same name in camel case.
 */
export type Shape = Readonly<Record<string, z.ZodType>>;

type CamelCase<K extends string> = K extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : K;

type Frozen<T> = T extends readonly (infer E)[] ? readonly E[] : T;

/** The values of a table in the frozen configuration. Secrets are not among them: `readSecret` finds each. */
export type ConfigOf<S extends Shape> = {
  readonly [
    K in keyof S & string as z.output<S[K]> extends SecretSources | undefined ? never : CamelCase<K>
  ]: Frozen<z.output<S[K]>>;
};

/**
 * A table read key by key. zod's own objects skip their cross-checks when one key fails, which would hide
 * mistakes until the next run; so rules over several keys use `values`, and only `whole` goes into the configuration.
 */
export interface Table<S extends Shape> {
  readonly shape: S;
  readonly at: Path;
  /** The values that are valid. */
  readonly values: Partial<ConfigOf<S>>;
  /** All values; undefined if any key was wrong. */
  readonly whole: ConfigOf<S> | undefined;
  /** Where its secrets are, by key. */
  readonly secrets: ReadonlyMap<string, SecretSources>;
  /** Whether the file names the key, with a valid value or not. */
  readonly names: (key: keyof S & string) => boolean;
}

/** Marks a key that SIGHUP can change. A change of any other key requires a restart. */
export function reloadable<T extends z.ZodType>(schema: T): T {
  return schema.meta({ reloadable: true });
}

export function isReloadable(schema: z.ZodType): boolean {
  return schema.meta()?.['reloadable'] === true;
}

/** The name of a TOML key in the frozen configuration: `quote_ttl_secs` → `quoteTtlSecs`. */
export function camelCase(key: string): string {
  return key.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** Takes the values of a shape's keys out of a table that has more. */
export function pick<S extends Shape>(shape: S, whole: ConfigOf<S>): ConfigOf<S> {
  const names = new Set(Object.keys(shape).map(camelCase));
  // these are the names that ConfigOf has
  return Object.fromEntries(Object.entries(whole).filter(([name]) => names.has(name))) as ConfigOf<S>;
}

/** Reads a table, reporting wrong, missing and unknown keys. */
export function readTable<S extends Shape>(shape: S, raw: unknown, at: Path, report: Report): Table<S> {
  if (!isTable(raw)) {
    report.mistake(at, 'must be a table');
    return { shape, at, values: {}, whole: undefined, secrets: new Map(), names: () => false };
  }
  const values: Record<string, unknown> = {};
  const secrets = new Map<string, SecretSources>();
  let isWhole = true;
  for (const [key, schema] of Object.entries(shape)) {
    const read = readValue(schema, raw[key], [...at, key], report);
    if (read === undefined) isWhole = false;
    else if (read.value instanceof SecretSources) secrets.set(key, read.value);
    else values[camelCase(key)] = read.value;
    const warning = plainHttpWarning(key, read?.value);
    if (warning !== undefined) report.warning([...at, key], warning);
  }
  reportUnknownKeys(Object.keys(shape), raw, at, report);
  // each value is the output of its key's schema
  return {
    shape,
    at,
    values: values as Partial<ConfigOf<S>>,
    whole: isWhole ? (values as ConfigOf<S>) : undefined,
    secrets,
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
