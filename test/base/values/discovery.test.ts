import {
  extractDiscoveryInfo,
  extractDiscoveryInfoV1,
  isDiscoverableV1,
  validateDiscoveryExtension,
  validateDiscoveryExtensionSpec,
} from '@x402/extensions/bazaar';
import fc from 'fast-check';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { expect, test } from 'vitest';
import { discoveryOf, plainDiscovery, type Discovery } from '../../../src/base/values/discovery.ts';
import { isInstalledWith, packageEnvironment } from '../../support/installed.ts';
import { propertyRuns } from '../../support/property-runs.ts';

/** What the package's own validators say of an entry. */
function faultsOf({ extension }: Discovery): unknown[] {
  const wire = JSON.parse(JSON.stringify(extension));
  return [validateDiscoveryExtensionSpec(wire), validateDiscoveryExtension(wire)].flatMap(
    ({ valid, errors }) => (valid ? [] : [errors]),
  );
}

const requirementV1 = (outputSchema: object) => ({
  scheme: 'exact',
  network: 'base' as never,
  maxAmountRequired: '1',
  resource: 'https://gateway.example/x402/jobs/1/0',
  description: 'a job',
  mimeType: 'application/json',
  outputSchema: outputSchema as Record<string, unknown>,
  payTo: '0x0',
  maxTimeoutSeconds: 300,
  asset: '0x0',
  extra: {},
});

const inputSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $id: 'https://operator.example/prompt.json',
  type: 'object',
  required: ['prompt', 'size'],
  properties: {
    prompt: { type: 'string', minLength: 1, description: 'what to draw' },
    size: { $ref: '#/$defs/size' },
    parts: { type: 'array', items: { $ref: '#' } },
  },
  $defs: { size: { type: 'integer', minimum: 64 } },
  examples: [{ prompt: 'a house', size: 128 }],
};
const outputSchema = { type: 'object', required: ['url'], properties: { url: { type: 'string' } } };

test('the official validators accept the entry of a job with schemas, and extract its example and method', () => {
  const entry = discoveryOf({ contentType: undefined, inputSchema, outputSchema });
  if (!entry) throw new Error('no entry');
  expect(faultsOf(entry)).toEqual([]);
  const found = extractDiscoveryInfo(
    {
      x402Version: 2,
      resource: { url: 'https://gateway.example/x402/jobs/1/0?quote=1', description: 'd', mimeType: 'm' },
      accepted: {} as never,
      payload: {},
      extensions: { bazaar: entry.extension },
    },
    {} as never,
  );
  expect(found).toMatchObject({
    resourceUrl: 'https://gateway.example/x402/jobs/1/0',
    method: 'POST',
    discoveryInfo: {
      input: { type: 'http', method: 'POST', bodyType: 'json', body: { prompt: 'a house', size: 128 } },
      output: { type: 'json', example: { url: '' } },
    },
  });
});

test.each([
  ['GET', { type: 'http', method: 'GET', queryParams: { days: 3 }, pathParams: { city: 'city' } }],
  ['PUT', { type: 'http', method: 'PUT', bodyType: 'json', body: { days: 3 }, pathParams: { city: 'city' } }],
])(
  'the official validators accept the entry of a route with the method %s, and extract its parameters and template',
  (method, input) => {
    const schema = { type: 'object', properties: { days: { type: 'integer' } }, examples: [{ days: 3 }] };
    const route = { method, path: '/weather/:city' };
    const entry = discoveryOf({ contentType: undefined, inputSchema: schema, outputSchema, route })!;
    expect(faultsOf(entry)).toEqual([]);
    expect(faultsOf(plainDiscovery(undefined, route))).toEqual([]);
    expect(entry.plain).toEqual(plainDiscovery(undefined, route).extension);
    const found = extractDiscoveryInfo(
      {
        x402Version: 2,
        resource: { url: 'https://api.example/weather/paris', description: 'd', mimeType: 'm' },
        accepted: {} as never,
        payload: {},
        extensions: { bazaar: entry.extension },
      },
      {} as never,
    );
    expect(found).toMatchObject({ method, routeTemplate: '/weather/:city', discoveryInfo: { input } });
    expect(extractDiscoveryInfoV1(requirementV1(entry.outputSchema))).toMatchObject({ input: { method } });
  },
);

test('the schema inside the entry refuses what the schema of the job refuses, through its references', () => {
  const { extension } = discoveryOf({ contentType: undefined, inputSchema, outputSchema })!;
  const withBody = (body: unknown) => ({
    ...extension,
    info: { input: { type: 'http', method: 'POST', bodyType: 'json', body } },
  });
  const isValid = (body: unknown) => validateDiscoveryExtension(withBody(body) as never).valid;
  expect(isValid({ prompt: 'x', size: 64 })).toBe(true);
  expect(isValid({ prompt: 'x', size: 63 })).toBe(false);
  expect(isValid({ prompt: 'x', size: 64, parts: [{ prompt: '', size: 64 }] })).toBe(false);
});

test.each([
  [undefined, 'json'],
  ['application/json', 'json'],
  ['application/ld+json', 'json'],
  ['multipart/form-data', 'form-data'],
  ['text/plain', 'text'],
  ['image/png', 'text'],
])(
  'the entry of a job with the content type %s and no schema is valid, of the body type %s',
  (type, bodyType) => {
    const entry = plainDiscovery(type);
    expect(faultsOf(entry)).toEqual([]);
    expect(entry.extension.info).toEqual({ input: { type: 'http', method: 'POST', bodyType, body: {} } });
  },
);

test('version 1 offers describe the fields of the body, as the official reader of version 1 expects', () => {
  const { outputSchema: v1 } = discoveryOf({ contentType: undefined, inputSchema, outputSchema })!;
  expect(isDiscoverableV1(requirementV1(v1))).toBe(true);
  const found = extractDiscoveryInfoV1(requirementV1(JSON.parse(JSON.stringify(v1))));
  expect(found).toMatchObject({
    input: { type: 'http', method: 'POST', bodyType: 'json', body: { prompt: { type: 'string' } } },
    output: { example: { url: '' } },
  });
  expect(isDiscoverableV1(requirementV1(plainDiscovery('text/plain').outputSchema))).toBe(true);
});

test.each([
  ['has a nested $id', { type: 'object', properties: { a: { $id: 'https://operator.example/a' } } }],
  ['has a property that facilitators take for a reference', { properties: { $ref: { type: 'string' } } }],
  ['has no value that is known', { type: 'string', pattern: '^[0-9]{4}$' }],
])('a schema that %s is left out', (_, schema) => {
  const declared = { contentType: undefined, outputSchema: undefined, inputSchema: schema };
  expect(discoveryOf(declared)).toBeUndefined();
});

test('a schema that names another document has no entry: the configuration refuses it before', () => {
  const inputNamed = { $ref: 'https://operator.example/other.json' };
  const declared = { contentType: undefined, outputSchema: undefined, inputSchema: inputNamed };
  expect(() => discoveryOf(declared)).toThrow("can't resolve reference");
});

const anySchema = fc.letrec<{ node: object }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(
      {},
      { type: 'string' },
      { type: 'string', minLength: 3 },
      { type: ['integer', 'null'], minimum: 5 },
      { type: 'number', exclusiveMinimum: 0 },
      { type: 'boolean' },
      { enum: ['a', 'b'] },
      { const: { $ref: '#/nowhere' } },
      { type: 'string', pattern: '^x$' },
      { type: 'object', properties: { again: { $ref: '#' } } },
    ),
    fc.record({ type: fc.constant('array'), items: tie('node'), minItems: fc.nat(2) }),
    fc
      .dictionary(fc.constantFrom('a', 'b', 'enum', 'properties', '$defs'), tie('node'), { maxKeys: 3 })
      .map((properties) => ({ type: 'object', properties, required: Object.keys(properties).slice(0, 1) })),
  ),
})).node;

test('whatever the schemas of a job are, its entry is valid by the official validators or there is none', () => {
  let entries = 0;
  fc.assert(
    fc.property(anySchema, anySchema, (input, output) => {
      const entry = discoveryOf({
        contentType: undefined,
        inputSchema: input as Record<string, unknown>,
        outputSchema: output as Record<string, unknown>,
      });
      if (!entry) return;
      entries += 1;
      expect(faultsOf(entry)).toEqual([]);
    }),
    propertyRuns(20),
  );
  expect(entries).toBeGreaterThan(5);
});

const checker = path.join(import.meta.dirname, '../../independent/discovery.py');
const hasChecker = isInstalledWith('python3', ['-c', 'import jsonschema']);
const absence = hasChecker
  ? ''
  : ': NOT CHECKED, JSONSCHEMA FOR PYTHON IS NOT INSTALLED (apt-get install python3-jsonschema)';
if (absence) process.stderr.write(`\n*** THE ENTRIES OF DISCOVERY${absence}\n\n`);

/** What an implementation of the specification in another language says of each entry. */
function independentFaults(entries: readonly unknown[]): readonly (readonly string[])[] {
  const options = { input: JSON.stringify(entries), env: packageEnvironment(), maxBuffer: 64 * 1024 * 1024 };
  return JSON.parse(execFileSync('python3', [checker], options).toString('utf8'));
}

/** Places of an entry whose change makes it wrong, or may; undefined removes what is there. */
const changes: readonly (readonly [place: string, value?: (drawn: unknown) => unknown])[] = [
  ['info.input', (drawn) => drawn],
  ['info.input.body', (drawn) => drawn],
  ['info.input.body'],
  ['info.input.method', (drawn) => drawn],
  ['info.input.method', () => 'GET'],
  ['info.input.bodyType', () => 'binary'],
  ['info.input.bodyType'],
  ['info.input.more', (drawn) => drawn],
  ['info.output', (drawn) => drawn],
  ['info.output', (example) => ({ type: 'json', example })],
  ['schema.properties.input.properties.body', () => ({ $ref: 'https://operator.example/a.json' })],
  ['schema.properties.input.properties.body', () => ({ type: 'nothing' })],
];

function changedEntry(entry: object, [place, value]: (typeof changes)[number], drawn: unknown): unknown {
  const copy = structuredClone(entry) as Record<string, unknown>;
  const keys = place.split('.');
  const last = keys.pop()!;
  const parent = keys.reduce((node, key) => node[key] as Record<string, unknown>, copy);
  parent[last] = value?.(drawn);
  return JSON.parse(JSON.stringify(copy));
}

test.skipIf(!hasChecker)(
  `an implementation in another language finds every entry valid, and judges changed ones as the official validators do${absence}`,
  () => {
    const fixed = discoveryOf({ contentType: undefined, inputSchema, outputSchema })!.extension;
    const entries: unknown[] = [fixed, plainDiscovery('text/plain').extension];
    const changed: unknown[] = [];
    for (const change of changes)
      for (const drawn of [{ prompt: 'x', size: 64, parts: [{ prompt: 'y', size: 65 }] }, { size: 64 }, 1])
        changed.push(changedEntry(fixed, change, drawn));
    fc.assert(
      fc.property(
        anySchema,
        anySchema,
        fc.constantFrom(...changes),
        fc.oneof(anySchema, fc.jsonValue()),
        (input, output, change, drawn) => {
          const entry = discoveryOf({
            contentType: undefined,
            inputSchema: input as Record<string, unknown>,
            outputSchema: output as Record<string, unknown>,
          });
          if (!entry) return;
          entries.push(entry.extension);
          changed.push(changedEntry(entry.extension, change, drawn));
        },
      ),
      propertyRuns(12),
    );
    const faults = independentFaults([...entries, ...changed]);
    expect(faults.slice(0, entries.length)).toEqual(entries.map(() => []));
    const verdicts = faults
      .slice(entries.length)
      .map((of, index) => ({ entry: changed[index], isValid: of.length === 0 }));
    const official = changed.map((entry) => ({
      entry,
      isValid: faultsOf({ extension: entry } as Discovery).length === 0,
    }));
    expect(verdicts).toEqual(official);
    expect(new Set(official.map(({ isValid }) => isValid))).toEqual(new Set([true, false]));
  },
);
