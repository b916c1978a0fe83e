import type { Random } from '../chaos/random.ts';
import { hostileValue, valueOf, type JsonSchema } from './values.ts';

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

export interface FuzzRequest {
  readonly method: string;
  /** With its query, as it is sent. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
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

/**
 * Draws a request of one operation: of valid values, of valid ones with one that is wrong, or of hostile ones.
 */
export function drawRequest(
  document: FuzzDocument,
  { template, method }: { readonly template: string; readonly method: string },
  credentials: Credentials,
  random: Random,
): FuzzRequest {
  const operation = document.paths[template]?.[method] ?? {};
  const manner = random.pick(manners);
  const wrongChance = { valid: 0, nearly: 0.2, hostile: 0.8 }[manner];
  const draw = (schema: JsonSchema | undefined): unknown =>
    random.chance(wrongChance)
      ? hostileValue(random)
      : valueOf(schema ?? {}, document.components.schemas ?? {}, random, wrongChance / 2);
  const parameters = operation.parameters ?? [];
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = textOf(draw(parameters.find((one) => one.in === 'path' && one.name === name)?.schema));
    // an empty segment would be another path
    return encodeURIComponent(value).slice(0, 300) || '0';
  });
  const query = parameters
    .filter((one) => one.in === 'query' && (one.required || random.chance(0.4)))
    .map(({ name, schema }) => `${name}=${encodeURIComponent(textOf(draw(schema))).slice(0, 2_000)}`);
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
  return {
    method: method.toUpperCase(),
    path: path + (query.length > 0 ? `?${query.join('&')}` : ''),
    headers,
    body,
  };
}

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
