import { z } from 'zod';
import { type ModelPrice, parsePrice } from '../values/price.ts';
import type { Path, Report } from './mistakes.ts';
import { suggest } from './suggest.ts';
import { type ConfigOf, readTables, type Table } from './table.ts';
import { decimal, flag, matching, plainName, wholeNumber, Wrong } from './values.ts';

const maxTokens = 100_000_000;
const name = matching(/^[\x21-\x7e]{1,200}$/, 'must be 1 to 200 visible ASCII characters, no blanks');
const target = z.preprocess(
  (raw) => (typeof raw === 'string' ? { name: raw } : raw),
  z.strictObject({ name: plainName, model: name.optional() }, 'must be a name, or { name, model }'),
);
const price = decimal(
  '2.50',
  (raw) =>
    parsePrice(raw) ??
    new Wrong('must be above 0 and below 1000000, with at most 9 decimals, such as "2.50"'),
);

/** The name of a parameter that the gateway would otherwise refuse. */
const parameter = matching(/^[A-Za-z0-9_.-]{1,64}$/, 'must be 1 to 64 of A-Z, a-z, 0-9, ".", "_" and "-"');

export const modelShape = {
  name: name.describe('Its name for clients'),
  upstreams: z
    .array(target, 'must be an array of names')
    .min(1, 'must name at least one upstream')
    .describe("Their names, or `{ name, model }` with the model's name there"),
  free_tier: flag.default(false).describe('Free for all; otherwise both prices are required'),
  input_price: price.optional().describe('For a million prompt tokens'),
  output_price: price.optional().describe('For a million answer tokens'),
  cached_input_price: price
    .optional()
    .describe("For a million read from the upstream's cache; default: `input_price`"),
  cache_write_price: price.optional().describe('For a million written to it; default: `input_price`'),
  context_length: wholeNumber(1, maxTokens).describe('Tokens of prompt and answer together'),
  max_output_tokens: wholeNumber(1, maxTokens).describe('At most `context_length`'),
  allowed_parameters: z
    .array(parameter, 'must be an array of names')
    .default([])
    .describe('Others that are passed on unchanged'),
} as const;

type ModelTable = Table<typeof modelShape>;
type ModelKeys = ConfigOf<typeof modelShape>;

export interface ModelConfig extends Omit<
  ModelKeys,
  'upstreams' | 'freeTier' | 'inputPrice' | 'outputPrice' | 'cachedInputPrice' | 'cacheWritePrice'
> {
  /** At least one; never the same twice. */
  readonly targets: readonly ModelTarget[];
  /** Undefined for a model of the free tier. */
  readonly price: ModelPrice | undefined;
}

/** An upstream, and its name for the model. */
export interface ModelTarget {
  readonly upstream: string;
  readonly model: string;
}

/** Reads `[[models]]`. Returns the whole ones; what is wrong with the others is reported. */
export function readModels(raw: unknown, upstreams: readonly string[], report: Report): ModelConfig[] {
  const models: ModelConfig[] = [];
  const names = new Map<string, number>();
  for (const [index, table] of readTables(modelShape, raw, ['models'], report).entries()) {
    const { at, values, whole } = table;
    const earlier = values.name === undefined ? undefined : names.get(values.name);
    if (earlier !== undefined) report.mistake([...at, 'name'], `repeats the name of models[${earlier}]`);
    else if (values.name !== undefined) names.set(values.name, index);
    checkPrices(table, report);
    checkLengths(table, report);
    checkTargets(table, upstreams, report);
    if (whole !== undefined) models.push(toModel(whole));
  }
  return models;
}

function checkPrices({ at, values, names }: ModelTable, report: Report): void {
  for (const key of ['input_price', 'output_price'] as const) {
    if (values.freeTier === true && names(key))
      report.mistake([...at, key], 'would be ignored: the model is of the free tier');
    if (values.freeTier === false && !names(key))
      report.mistake([...at, key], 'is missing: only a model with free_tier = true has no price');
  }
  for (const key of ['cached_input_price', 'cache_write_price'] as const)
    if (values.freeTier === true && names(key))
      report.mistake([...at, key], 'would be ignored: the model is of the free tier');
}

function checkLengths({ at, values }: ModelTable, report: Report): void {
  const { contextLength: context, maxOutputTokens: output } = values;
  if (context === undefined || output === undefined || output <= context) return;
  report.mistake([...at, 'max_output_tokens'], `must not be above context_length (${context})`);
}

function checkTargets({ at, values }: ModelTable, upstreams: readonly string[], report: Report): void {
  const seen = new Set<string>();
  for (const [index, { name: upstream, model }] of (values.upstreams ?? []).entries()) {
    const targetAt: Path = [...at, 'upstreams', index];
    if (!upstreams.includes(upstream)) report.mistake(targetAt, unknownUpstream(upstream, upstreams));
    const place = `${upstream} ${model ?? values.name ?? ''}`;
    if (seen.has(place)) report.mistake(targetAt, `names ${upstream} twice`);
    seen.add(place);
  }
}

function unknownUpstream(upstream: string, known: readonly string[]): string {
  const meant = suggest(upstream, known);
  return `no upstream is named ${upstream}${meant === undefined ? '' : `; did you mean ${meant}?`}`;
}

function toModel(whole: ModelKeys): ModelConfig {
  const {
    upstreams,
    freeTier: _,
    inputPrice,
    outputPrice,
    cachedInputPrice,
    cacheWritePrice,
    ...rest
  } = whole;
  return {
    ...rest,
    targets: upstreams.map(({ name: upstream, model }) => ({ upstream, model: model ?? whole.name })),
    price:
      inputPrice === undefined || outputPrice === undefined
        ? undefined
        : {
            inputNanosPerMillion: inputPrice,
            outputNanosPerMillion: outputPrice,
            ...(cachedInputPrice !== undefined && { cachedInputNanosPerMillion: cachedInputPrice }),
            ...(cacheWritePrice !== undefined && { cacheWriteNanosPerMillion: cacheWritePrice }),
          },
  };
}
