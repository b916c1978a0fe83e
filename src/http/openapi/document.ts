import { type RefusalCode, refusals } from '../../domain/refusal.ts';
import { componentSchemas, encodedJson, type JsonObject, schemaOf } from './components.ts';
import { answerHeaders } from './headers.ts';
import * as jobs from './job-operations.ts';
import { type DescribedAnswer, type Operation, type Security, tags } from './operation.ts';
import * as operator from './operator-operations.ts';
import { pathParameters } from './path-parameters.ts';
import { documentOperation } from './reference-operations.ts';
import { refusalAnswers } from './refusals.ts';
import * as runner from './runner-operations.ts';
import * as status from './status-operations.ts';

/** The version of this interface: the package's. */
const version = '0.1.0';

/** Every public route: what is not here is not answered. */
export const operations: readonly Operation[] = [
  jobs.payOperation,
  jobs.dryRunOperation,
  jobs.priceOperation,
  jobs.receiptOperation,
  status.healthOperation,
  status.readyOperation,
  status.statsOperation,
  runner.leaseOperation,
  runner.extendOperation,
  runner.completeOperation,
  runner.failOperation,
  operator.deadLettersOperation,
  operator.requeueOperation,
  documentOperation,
];

/** What can be answered before there is a route to answer. */
export const routelessCodes = [
  'invalid_request',
  'not_found',
  'request_timeout',
  'headers_too_large',
] as const satisfies readonly RefusalCode[];

const description = `Pay for jobs over x402: each payment becomes one call for a runner, and everything that happened stands in a ledger.

**Refusals** are \`{"error": "one sentence for a person", "code": "machine_word"}\`, some with more beside them. The codes
are a closed table: each operation lists all of its own. Nobody is charged for a refusal. Before any route is found, a
request can also be refused with
${routelessCodes.map((code) => `\`${code}\` (${refusals[code].status})`).join(', ')}.

**Values**: amounts of tokens and wei are decimal strings; times are RFC 3339 in UTC; ids are numbers up to 2^53 − 1.

**Browsers**: a page of any origin may call \`/x402\`, without credentials.`;

const securitySchemes: Readonly<Record<Security, JsonObject>> = {
  receiptToken: { type: 'http', scheme: 'bearer', description: 'The `receipt_token` of the 202.' },
  runnerToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'The token of a runner whose mode is `lease`.',
  },
  operatorToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'Made by `tollbook tokens create`, with the scopes that it needs.',
  },
};

/** The OpenAPI 3.1 document of a gateway that clients reach at this address. */
export function openApiDocument(publicUrl: string): JsonObject {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tollbook',
      version,
      description,
      license: { name: 'Apache 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: publicUrl }],
    tags: Object.entries(tags).map(([name, tag]) => ({ name, description: tag })),
    paths: pathsJson(),
    components: {
      schemas: componentSchemas(),
      headers: Object.fromEntries(Object.entries(answerHeaders)),
      securitySchemes,
    },
  };
}

function pathsJson(): JsonObject {
  const byPath = Map.groupBy(operations, ({ path }) => path);
  const entries = [...byPath].map(([path, group]) => [
    path,
    Object.fromEntries(group.map((operation) => [operation.method, operationJson(operation)])),
  ]);
  return Object.fromEntries(entries);
}

function operationJson(operation: Operation): JsonObject {
  const parameters = parametersJson(operation);
  const answers = [...operation.answers, ...refusalAnswers(operation.refusals, operation.refusalContext)];
  return {
    operationId: operation.id,
    tags: [operation.tag],
    summary: operation.summary,
    description: operation.description,
    security: securityJson(operation.security),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(operation.body ? { requestBody: bodyJson(operation.body) } : {}),
    responses: Object.fromEntries(
      answers
        .toSorted((one, other) => one.status - other.status)
        .map((answer) => [String(answer.status), answerJson(answer)]),
    ),
  };
}

/** A receipt can be read without its token; everything else that names one demands it. */
function securityJson(security: Security | undefined): readonly JsonObject[] {
  if (!security) return [];
  return security === 'receiptToken' ? [{}, { [security]: [] }] : [{ [security]: [] }];
}

function parametersJson({ path, query, requestHeaders = [] }: Operation): readonly JsonObject[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  return [
    ...names.map((name) => pathParameter(name)),
    ...Object.entries(query?.shape ?? {}).map(([name, schema]) => ({
      name,
      in: 'query',
      schema: schemaOf(schema),
    })),
    ...requestHeaders.map(({ name, description: text, json }) => ({
      name,
      in: 'header',
      description: text,
      schema: json ? encodedJson(json) : { type: 'string' },
    })),
  ];
}

function pathParameter(name: string): JsonObject {
  const schema = pathParameters.get(name);
  if (!schema) throw new Error(`the path parameter ${name} is not described`);
  return { name, in: 'path', required: true, schema: schemaOf(schema) };
}

function bodyJson(body: NonNullable<Operation['body']>): JsonObject {
  if ('bytes' in body) return { description: body.description, content: { '*/*': {} } };
  return { required: true, content: { 'application/json': { schema: schemaOf(body.schema) } } };
}

function answerJson({ description: text, schema, text: body, headers = [] }: DescribedAnswer): JsonObject {
  const content = schema
    ? { 'application/json': { schema: schemaOf(schema) } }
    : body !== undefined && { 'text/plain': { schema: { type: 'string', const: body } } };
  return {
    description: text,
    ...(headers.length > 0
      ? {
          headers: Object.fromEntries(
            headers.map((name) => [name, { $ref: `#/components/headers/${name}` }]),
          ),
        }
      : {}),
    ...(content ? { content } : {}),
  };
}
