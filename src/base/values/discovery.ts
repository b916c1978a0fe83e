import { Ajv2020 } from 'ajv/dist/2020.js';
import { isObject } from './json-object.ts';

/** The x402 extension by which a facilitator lists jobs, for programs that look for them. */
export const discoveryKey = 'bazaar';

type JsonSchema = Readonly<Record<string, unknown>>;

/** How a route is requested. */
export interface DeclaredRoute {
  readonly method: string;
  /** As `patternFault()` takes it. */
  readonly path: string;
}

/** What a job takes and gives, as far as its operator has declared it. */
export interface DeclaredJob {
  /** Undefined for a job, which takes a POST at an address without parameters. */
  readonly route?: DeclaredRoute | undefined;
  /** A media type in lower case. */
  readonly contentType: string | undefined;
  /** Of the body, or of the query if the method has no body. */
  readonly inputSchema: JsonSchema | undefined;
  readonly outputSchema: JsonSchema | undefined;
}

/** A job's entry in discovery. */
export interface Discovery {
  /** Version 2: the value of the extension, in the form that facilitators validate. */
  readonly extension: Extension;
  /** The same without schemas. */
  readonly plain: Extension;
  /** Version 1: `outputSchema` of its offers. */
  readonly outputSchema: object;
}

interface Extension {
  /** Of a route with parameters in its path. */
  readonly routeTemplate?: string;
  readonly info: object;
  readonly schema: JsonSchema;
}

/** Whether requests of a method have a query in place of a body. */
export function isQueryMethod(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'DELETE';
}

const draft = 'https://json-schema.org/draft/2020-12/schema';
const anyObject: JsonSchema = { type: 'object' };

/** The entry of a job without schemas: its method, and the parameters in its path. */
export function plainDiscovery(contentType: string | undefined, route?: DeclaredRoute): Discovery {
  return entryOf(contentType, route, undefined, undefined);
}

/**
 * The entry of a job with its schemas, each with an example: the first of its `examples`, its `default`, or one made from it.
 * Undefined if a schema cannot stand inside another one or no example of it is known.
 */
export function discoveryOf(job: DeclaredJob): Discovery | undefined {
  const { contentType, route, inputSchema, outputSchema } = job;
  const place = isQueryMethod(methodOf(route)) ? 'queryParams' : 'body';
  const input = inputSchema && part(inputSchema, `#/properties/input/properties/${place}`);
  const output = outputSchema && part(outputSchema, '#/properties/output/properties/example');
  if ((inputSchema && !input) || (outputSchema && !output)) return undefined;
  return entryOf(contentType, route, input, output);
}

function methodOf(route: DeclaredRoute | undefined): string {
  return route?.method ?? 'POST';
}

/** The parameters in a path, each with its name as an example. */
function pathParamsOf(route: DeclaredRoute | undefined) {
  const names = [...(route?.path.matchAll(/:(\w+)/g) ?? [])].map(([, name = '']) => name);
  if (names.length === 0) return undefined;
  const string = { type: 'string' };
  return {
    example: Object.fromEntries(names.map((name) => [name, name])),
    schema: {
      type: 'object',
      properties: Object.fromEntries(names.map((name) => [name, string])),
      required: names,
    },
  };
}

/** A schema where it stands in the entry, and a value that is valid by it. */
interface Part {
  readonly schema: JsonSchema;
  readonly example: unknown;
}

function entryOf(
  contentType: string | undefined,
  route: DeclaredRoute | undefined,
  input: Part | undefined,
  output: Part | undefined,
): Discovery {
  const { example, schema } = input ?? { example: {}, schema: anyObject };
  const method = methodOf(route);
  const params = pathParamsOf(route);
  const bodyType = bodyTypeOf(contentType);
  const isQuery = isQueryMethod(method);
  const info = {
    type: 'http',
    method,
    ...(isQuery ? { queryParams: example } : { bodyType, body: example }),
    ...(params && { pathParams: params.example }),
  };
  const takes = isQuery ? { queryParams: schema } : { bodyType: { enum: [bodyType] }, body: schema };
  const extension = {
    ...(params && route && { routeTemplate: route.path }),
    info: { input: info, ...(output && { output: { type: 'json', example: output.example } }) },
    schema: {
      $schema: draft,
      type: 'object',
      properties: {
        input: {
          type: 'object',
          properties: {
            type: { const: 'http' },
            method: { enum: [method] },
            ...takes,
            ...(params && { pathParams: params.schema }),
          },
          required: ['type', 'method', ...Object.keys(takes)],
          additionalProperties: false,
        },
        ...(output && {
          output: {
            type: 'object',
            properties: { type: { type: 'string' }, example: output.schema },
            required: ['type'],
          },
        }),
      },
      required: ['input'],
    },
  };
  const fields = isObject(schema['properties']) ? schema['properties'] : undefined;
  const fieldsV1 = isQuery
    ? { queryParams: fields ?? example }
    : { bodyType, ...(fields ? { bodyFields: fields } : { body: example }) };
  return {
    extension,
    plain: input || output ? plainDiscovery(contentType, route).extension : extension,
    outputSchema: {
      input: {
        type: 'http',
        method,
        discoverable: true,
        ...fieldsV1,
        ...(params && { pathParams: params.schema.properties }),
      },
      ...(output && { output: output.example }),
    },
  };
}

function bodyTypeOf(contentType = 'application/json'): 'json' | 'form-data' | 'text' {
  if (/^application\/(?:.+\+)?json$/.test(contentType)) return 'json';
  return /^multipart\/form-data$|^application\/x-www-form-urlencoded$/.test(contentType)
    ? 'form-data'
    : 'text';
}

/** @param place the JSON pointer at which the schema will stand: its own references begin there */
function part(schema: JsonSchema, place: string): Part | undefined {
  const example = exampleOf(schema);
  if (example === undefined) return undefined;
  const { $schema: _, $id: __, examples: ___, ...rest } = schema;
  const placed = placedAt(rest, place);
  return placed && { schema: placed, example };
}

/** Whose values are data, in which nothing is a reference. */
const dataKeywords = new Set(['const', 'enum', 'default', 'examples']);

/**
 * A copy whose references begin at `place`; undefined if one names something outside of the schema. Facilitators refuse every
 * `$id`, and a property of the name `$ref` or `$id`, wherever it stands.
 */
function placedAt(schema: JsonSchema, place: string): JsonSchema | undefined {
  let isUsable = true;
  const move = (node: unknown, isData: boolean): unknown => {
    if (Array.isArray(node)) return node.map((each) => move(each, isData));
    if (!isObject(node)) return node;
    const members = Object.entries(node).map(([key, value]) => {
      const isReference = key === '$ref' && !isData && typeof value === 'string' && value.startsWith('#');
      if ((key === '$ref' && !isReference) || key === '$id') isUsable = false;
      if (isReference && /^#(?:\/|$)/.test(value)) return [key, `${place}${value.slice(1)}`];
      return [key, move(value, isData || dataKeywords.has(key))];
    });
    return Object.fromEntries(members);
  };
  const moved = move(schema, false) as JsonSchema;
  return isUsable ? moved : undefined;
}

/** A value that is valid by the schema, which is known to compile; undefined if no such value is known. */
function exampleOf(schema: JsonSchema): unknown {
  const isValid = new Ajv2020({ strict: false, validateFormats: false, validateSchema: false }).compile(
    schema,
  );
  const { examples, default: usual } = schema;
  const declared: unknown[] = Array.isArray(examples) ? examples : [];
  return [...declared, usual, simplest(schema)].find((value) => value !== undefined && isValid(value));
}

/** The simplest value by the most used keywords. Whether it is valid is checked. */
function simplest(schema: unknown): unknown {
  if (!isObject(schema)) return null;
  const { const: only, enum: allowed, examples, default: usual, type } = schema;
  const named = [only, usual, first(examples), first(allowed)].find((value) => value !== undefined);
  if (named !== undefined) return named;
  switch (first(type) ?? type) {
    case 'string':
      return '?'.repeat(numberOf(schema['minLength'], 0));
    case 'integer':
    case 'number':
      return numberOf(schema['minimum'], numberOf(schema['exclusiveMinimum'], -1) + 1);
    case 'boolean':
      return false;
    case 'null':
      return null;
    case 'array':
      return Array.from({ length: numberOf(schema['minItems'], 0) }, () => simplest(schema['items']));
    default: {
      const properties = isObject(schema['properties']) ? schema['properties'] : {};
      const required: unknown[] = Array.isArray(schema['required']) ? schema['required'] : [];
      return Object.fromEntries(required.map((name) => [name, simplest(properties[String(name)])]));
    }
  }
}

function first(list: unknown): unknown {
  return Array.isArray(list) ? list[0] : undefined;
}

/** An example is worth no more than this many characters or items. */
const mostRepeated = 100;

function numberOf(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? Math.min(value, mostRepeated) : otherwise;
}
