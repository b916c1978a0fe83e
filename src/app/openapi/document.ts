import { z } from 'zod';
import { accountName, keyId } from '../../chat/http/schemas/operator-credit.ts';
import { runnerParameter } from '../../jobs/http/schemas/operator.ts';
import { reconciliationId } from '../../finance/http/schemas/reconcile.ts';
import { triggerName } from '../../jobs/http/schemas/trigger.ts';
import { callId, jobIndex, serviceId } from '../../base/http/values.ts';
import type { Feature } from '../../base/config/config.ts';
import { type RefusalCode, refusals } from '../../base/errors/refusal.ts';
import { componentSchemas, encodedJson, type JsonObject, schemaOf, usedComponents } from './components.ts';
import { answerHeaders } from './headers.ts';
import {
  type DescribedAnswer,
  ifNoneMatch,
  notModified,
  type Operation,
  operations,
  type Security,
  tags,
} from './operation.ts';
import { openAiAnswers, refusalAnswers } from './refusals.ts';
import { auditOperations, logOperations } from './audit-operations.ts';
import { chatOperations } from './chat-operations.ts';
import { identityOperations } from './identity-operations.ts';
import { jobOperations } from './job-operations.ts';
import { operatorOperations, operatorCreditOperations } from './operator-operations.ts';
import { runnerOperations } from './runner-operations.ts';
import { chatStatusOperations, gatewayStatusOperations, jobStatusOperations } from './status-operations.ts';
import { triggerOperations } from './trigger-operations.ts';

/** The version of this interface: the package's. */
const version = '0.1.0';

/** A part of the API that can be on or off: a feature, user accounts, the sealed log, and the audit API. */
export type Part = Feature | 'identity' | 'audit' | 'log';

/** Every public route of each part. */
const operationsByPart: Readonly<Record<Part, readonly Operation[]>> = {
  x402: [
    ...jobOperations,
    ...jobStatusOperations,
    ...triggerOperations,
    ...runnerOperations,
    ...operatorOperations,
  ],
  chat: [...chatOperations, ...chatStatusOperations, ...operatorCreditOperations],
  identity: identityOperations,
  audit: [...gatewayStatusOperations, ...auditOperations],
  log: logOperations,
};

const ofReference = { tag: 'Reference' } as const;
const documentOperations = operations(ofReference, {
  'GET /openapi.json': {
    id: 'getOpenApi',
    summary: 'This document',
    description: 'OpenAPI 3.1. `/docs` and `/docs/runners` show it as pages.',
    requestHeaders: [ifNoneMatch],
    answers: [
      {
        status: 200,
        description: 'The document.',
        schema: z.looseObject({ openapi: z.literal('3.1.0') }),
        headers: ['ETag'],
      },
      notModified,
    ],
  },
});

export function operationsOf(parts: readonly Part[]): readonly Operation[] {
  return [...parts.flatMap((part) => operationsByPart[part]), ...documentOperations];
}

/** Refusals before a route is found. */
function listed(codes: readonly RefusalCode[]): string {
  return codes.map((code) => `\`${code}\` (${refusals[code].status})`).join(', ');
}

/** Codes of paid routes, whose paths are the operator's own. */
export const paidRouteCodes = [
  'answer_not_kept',
  'answer_under_way',
  'price_unavailable',
  'refund_due',
  'upgrade_refused',
  'upstream_failed',
  'upstream_unanswered',
  'upstream_unavailable',
] as const satisfies readonly RefusalCode[];

export const routelessCodes = [
  'invalid_request',
  'not_found',
  'method_not_allowed',
  'request_timeout',
  'headers_too_large',
  'quiet',
] as const satisfies readonly RefusalCode[];

/** For operators as well as for customers. */
export const aboutRequests = `**Refusals** are \`{"error": "one sentence", "code": "machine_readable"}\`, some with further fields. Each operation lists all of
its codes. Before a route is found, a request can also be refused with ${listed(routelessCodes)}.

**Values**: amounts of tokens and wei are decimal strings; times are RFC 3339 in UTC; ids are numbers up to 2^53 − 1.`;

const aboutJobs = `${aboutRequests}

**Charges**: most refusals charge nothing, and say so; after any other, send the same request again, and sign a new payment only if
the sentence says so. Paid routes have paths and an address of their own, and answer with the upstream's status or also with
${listed(paidRouteCodes)}.

**Browsers**: a page of any origin may call \`/x402\`, without credentials.`;

const aboutChat = `**Model chat** is served below \`/v1\` in OpenAI's format: set a client's base URL to \`/v1\` of this address. Every error
there is in OpenAI's format, and every answer has an \`X-Request-Id\`. Amounts are decimal strings of the currency. A page of
any origin may call it, without cookies.`;

const aboutPeople = `**Users** sign in below \`/api\`, from pages of this address only: a write request with another \`Origin\` is refused.`;

const aboutPart: Readonly<Record<Part, string>> = {
  x402: aboutJobs,
  chat: aboutChat,
  identity: aboutPeople,
  audit: '',
  log: '',
};

const securitySchemes: Readonly<Record<SchemeName, JsonObject>> = {
  receiptToken: { type: 'http', scheme: 'bearer', description: 'The `receipt_token` of the 202.' },
  runnerToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'The token of a runner with `mode = "lease"`.',
  },
  operatorToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'A token that `tollbook tokens create --scope …` creates.',
  },
  apiKey: { type: 'http', scheme: 'bearer', description: 'An API key: `sk-net-…`.' },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: '__Host-tollbook.session_token',
    description: 'A session cookie. On loopback over HTTP the name has no `__Host-` prefix.',
  },
};

/** The OpenAPI 3.1 document of a gateway with these parts at this public URL. */
export function openApiDocument(publicUrl: string, parts: readonly Part[]): JsonObject {
  const described = operationsOf(parts);
  const usedTags = new Set<string>(described.map(({ tag }) => tag));
  const usedSchemes = new Set<string>(described.flatMap(({ security }) => schemeOf(security) ?? []));
  const paths = pathsJson(described);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tollbook',
      ...(parts.includes('x402') && {
        summary:
          'Pay for jobs over x402: each payment becomes one call for a runner, and the ledger records every step.',
      }),
      version,
      description: parts.flatMap((part) => aboutPart[part] || []).join('\n\n'),
      license: { name: 'Apache 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: publicUrl }],
    tags: Object.entries(tags)
      .filter(([name]) => usedTags.has(name))
      .map(([name, { text }]) => ({ name, description: text })),
    paths,
    components: {
      ...usedComponents(paths, { schemas: componentSchemas(), headers: answerHeaders }),
      securitySchemes: Object.fromEntries(
        Object.entries(securitySchemes).filter(([name]) => usedSchemes.has(name)),
      ),
    },
  };
}

function pathsJson(described: readonly Operation[]): JsonObject {
  const byPath = Map.groupBy(described, ({ path }) => path);
  const entries = [...byPath].map(([path, group]) => [
    path,
    Object.fromEntries(group.map((operation) => [operation.method, operationJson(operation)])),
  ]);
  return Object.fromEntries(entries);
}

function operationJson(operation: Operation): JsonObject {
  const parameters = parametersJson(operation);
  const described = [
    ...operation.answers,
    ...refusalAnswers(operation.refusals, operation.refusalContext),
    ...openAiAnswers(operation.errors ?? []),
  ];
  const answers = described.map((answer) => ({
    ...answer,
    headers: [...new Set([...(answer.headers ?? []), ...(operation.headers ?? []), 'X-Request-Id' as const])],
  }));
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

type SchemeName = Exclude<Security, 'optionalApiKey' | 'optionalOperatorToken'>;

function schemeOf(security: Security | undefined): SchemeName | undefined {
  if (security === 'optionalApiKey') return 'apiKey';
  return security === 'optionalOperatorToken' ? 'operatorToken' : security;
}

/** The receipt and free models can be read without a token; every other scheme is required. */
function securityJson(security: Security | undefined): readonly JsonObject[] {
  const scheme = schemeOf(security);
  if (!scheme) return [];
  const isOptional = security === 'receiptToken' || security?.startsWith('optional');
  return isOptional ? [{}, { [scheme]: [] }] : [{ [scheme]: [] }];
}

function parametersJson({ path, query, requestHeaders = [] }: Operation): readonly JsonObject[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  return [
    ...names.map((name) => pathParameter(name)),
    ...Object.entries(query?.shape ?? {}).map(([name, schema]) => ({
      name,
      in: 'query',
      ...(!(schema as z.ZodType).safeParse(undefined).success && { required: true }),
      schema: schemaOf(schema),
    })),
    ...requestHeaders.map(({ name, description: text, json, required }) => ({
      name,
      in: 'header',
      description: text,
      ...(required && { required: true }),
      schema: json
        ? encodedJson(json)
        : { type: 'string', ...(required && { examples: [required.example] }) },
    })),
  ];
}

/** The parameters in paths. A malformed one is answered like an unknown one: 404, or `lease_lost`. */
const pathParameters: ReadonlyMap<string, z.ZodType> = new Map<string, z.ZodType>([
  ['service_id', serviceId],
  ['job_index', jobIndex],
  ['call_id', callId],
  ['part', z.int().min(0).describe('The number of the part, from 0.')],
  ['key_id', keyId],
  [
    'address',
    z
      .string()
      .regex(/^0x[0-9a-fA-F]{40}$/)
      .describe('The address of the wallet.'),
  ],
  ['runner', runnerParameter],
  ['trigger', triggerName],
  ['account', accountName],
  ['reconciliation_id', reconciliationId],
  ['action', z.string().describe('The path of the action. Slashes are not encoded.')],
  ['model', z.string().describe('The name of the model. Slashes are not encoded.')],
  [
    'tile',
    z
      .string()
      .regex(/^(?:\d{1,2}|entries)\/(?:x\d{3}\/)*\d{3}(?:\.p\/\d{1,3})?$/)
      .meta({ description: 'Level and index as tlog-tiles writes them.', examples: ['0/x001/234.p/56'] }),
  ],
  [
    'quote_digest',
    z
      .string()
      .regex(/^0x[0-9a-fA-F]{64}$/)
      .describe('The digest of the quote.'),
  ],
]);

function pathParameter(name: string): JsonObject {
  const schema = pathParameters.get(name);
  if (!schema) throw new Error(`the path parameter ${name} is not described`);
  return { name, in: 'path', required: true, schema: schemaOf(schema) };
}

function bodyJson(body: NonNullable<Operation['body']>): JsonObject {
  if ('bytes' in body) return { description: body.description, content: { [body.bytes]: {} } };
  return { required: true, content: { 'application/json': { schema: schemaOf(body.schema) } } };
}

function answerJson(answer: DescribedAnswer): JsonObject {
  const { description: text, headers = [] } = answer;
  const content = contentJson(answer);
  return {
    description: text,
    ...(headers.length > 0
      ? {
          headers: Object.fromEntries(
            headers.map((name) => [name, { $ref: `#/components/headers/${name}` }]),
          ),
        }
      : {}),
    ...(Object.keys(content).length > 0 ? { content } : {}),
  };
}

function contentJson({ schema, text, bytes, events }: DescribedAnswer): JsonObject {
  return {
    ...(schema ? { 'application/json': { schema: schemaOf(schema) } } : {}),
    ...(text === undefined ? {} : { 'text/plain': { schema: { type: 'string', const: text } } }),
    ...(bytes === undefined ? {} : { [bytes]: { schema: { type: 'string' } } }),
    ...(events === undefined
      ? {}
      : { 'text/event-stream': { schema: { type: 'string', description: events } } }),
  };
}
