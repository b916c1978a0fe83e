import type { Random } from '../chaos/random.ts';
import type { KnownValues } from './known-values.ts';
import { hostileValue, type JsonSchema, valueOf } from './values.ts';

/** The parts of an OpenAPI document that requests are made from. */
export interface FuzzDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, FuzzOperation>>>>;
  readonly components: { readonly schemas?: Readonly<Record<string, JsonSchema>> };
}

interface FuzzOperation {
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly schema?: JsonSchema;
    readonly required?: boolean;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema?: JsonSchema }>> };
  readonly security?: readonly Readonly<Record<string, unknown>>[];
}

/** Headers with credentials: those that each security scheme of the document asks for, and any others. */
export interface Credentials {
  readonly byScheme: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly others: readonly Readonly<Record<string, string>>[];
}

export interface SentRequest {
  readonly method: string;
  /** With its query, as it is sent. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: Buffer | undefined;
}

/** The operations of a document, each with its template. */
export function operationsIn({
  paths,
}: FuzzDocument): { readonly template: string; readonly method: string }[] {
  return Object.entries(paths).flatMap(([template, methods]) =>
    Object.keys(methods).map((method) => ({ template, method })),
  );
}

/** How far requests keep to their schemas. */
const manners = ['valid', 'nearly', 'hostile'] as const;

/** What requests are drawn with. */
export interface RequestSource {
  readonly credentials: Credentials;
  readonly known: KnownValues;
  readonly random: Random;
}

/**
 * Draws a request of one operation: of valid values, of valid ones with one that is wrong, or of hostile ones.
 */
export function drawRequest(
  document: FuzzDocument,
  { template, method }: { readonly template: string; readonly method: string },
  { credentials, known, random }: RequestSource,
): SentRequest {
  const operation = document.paths[template]?.[method] ?? {};
  const manner = random.pick(manners);
  const wrongChance = { valid: 0, nearly: 0.2, hostile: 0.8 }[manner];
  const components = document.components.schemas ?? {};
  const source = { components, known, random, wrongChance: wrongChance / 2 };
  const draw = (schema: JsonSchema | undefined, name?: string): unknown =>
    random.chance(wrongChance) ? hostileValue(random) : valueOf(schema ?? {}, source, name);
  const parameters = operation.parameters ?? [];
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = textOf(
      draw(parameters.find((one) => one.in === 'path' && one.name === name)?.schema, name),
    );
    // an empty segment would be another path
    return encodeURIComponent(value).slice(0, 300) || '0';
  });
  const query = parameters
    .filter((one) => one.in === 'query' && (one.required || random.chance(0.4)))
    .map(({ name, schema }) => `${name}=${encodeURIComponent(textOf(draw(schema, name))).slice(0, 2_000)}`);
  const schemes = (operation.security ?? []).flatMap((one) => Object.keys(one));
  const fitting = schemes.map((scheme) => credentials.byScheme[scheme]).filter((one) => one !== undefined);
  const isFitting = fitting.length > 0 && random.chance(0.7);
  const headers: Record<string, string> = { ...random.pick(isFitting ? fitting : credentials.others) };
  for (const { name } of parameters.filter((one) => one.in === 'header' && random.chance(0.4)))
    headers[name.toLowerCase()] = headerText(random.chance(0.5) ? encodedJson(draw({})) : textOf(draw({})));
  const content = Object.entries(operation.requestBody?.content ?? {});
  let body: Buffer | undefined;
  if (content.length > 0 && !(manner === 'hostile' && random.chance(0.1))) {
    const [type, { schema }] = random.pick(content);
    headers['content-type'] =
      manner === 'hostile' && random.chance(0.3) ? headerText(textOf(hostileValue(random))) : type;
    body = bodyOf(draw(schema), random, wrongChance);
  }
  if (manner === 'hostile' && random.chance(0.1)) Object.assign(headers, random.pick(hostileHeaders));
  return {
    method: method.toUpperCase(),
    path: path + (query.length > 0 ? `?${query.join('&')}` : ''),
    headers,
    body,
  };
}

/** What a client may say about a request besides its credentials. */
const hostileHeaders: readonly Readonly<Record<string, string>>[] = [
  { 'x-forwarded-for': 'unknown, 1.2.3.4:5' },
  { 'x-forwarded-for': 'x'.repeat(3_000) },
  { 'content-encoding': 'gzip' },
  { 'accept-encoding': 'gzip;q=x' },
  { accept: 'text/html' },
  { 'if-none-match': '*' },
  { 'if-none-match': 'W/"x", "'.repeat(300) },
  { range: 'bytes=0-1,2-3,4-' },
  { origin: 'null' },
  { 'x-http-method-override': 'DELETE' },
  { 'x-request-id': "1'; drop table x" },
  { 'idempotency-key': 'x'.repeat(300) },
];

function bodyOf(value: unknown, random: Random, wrongChance: number): Buffer {
  const bytes = Buffer.from(JSON.stringify(value) ?? '');
  if (!random.chance(wrongChance)) return bytes;
  switch (random.between(0, 5)) {
    case 0:
      return bytes.subarray(0, random.between(0, bytes.length));
    case 1:
      return Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]);
    case 2:
      return Buffer.from('['.repeat(random.between(1, 20_000)));
    case 3: {
      const changed = Buffer.from(bytes);
      if (changed.length > 0) changed[random.between(0, changed.length - 1)] = random.between(0, 255);
      return changed;
    }
    case 4:
      return Buffer.from(
        `{"__proto__":{"x":1},"constructor":{"prototype":{"x":1}},${bytes.subarray(1).toString()}`,
      );
    default:
      return bytes;
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.toWellFormed() : (JSON.stringify(value) ?? '').toWellFormed();
}

function encodedJson(value: unknown): string {
  return Buffer.from(JSON.stringify(value) ?? '').toString('base64');
}

/** What a header can carry. */
function headerText(text: string): string {
  return text
    .replaceAll(/[^\t\x20-\x7e]/g, '?')
    .trim()
    .slice(0, 4_000);
}
