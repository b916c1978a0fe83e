import type { z } from 'zod';
import type { OpenAiErrorName } from '../../base/errors/openai-error.ts';
import type { RefusalCode } from '../../base/errors/refusal.ts';
import type { HeaderName } from './headers.ts';

/** One route as the document describes it. Every public route has one. */
export interface Operation {
  readonly method: 'get' | 'post' | 'delete';
  /** With OpenAPI's braces; each name in them is one of `pathParameters`. */
  readonly path: string;
  /** Unique: generated clients name their functions by it. */
  readonly id: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description: string;
  readonly security?: Security;
  readonly query?: z.ZodObject;
  readonly requestHeaders?: readonly RequestHeader[];
  readonly body?: RequestBody;
  readonly answers: readonly DescribedAnswer[];
  /** Exactly the codes that this route can answer with. */
  readonly refusals: readonly RefusalCode[];
  /** Fields that refusals of this route may have besides `error` and `code`. */
  readonly refusalContext?: z.ZodRawShape;
  /** The errors of the chat API, in OpenAI's format. */
  readonly errors?: readonly OpenAiErrorName[];
  /** Headers of every answer. */
  readonly headers?: readonly HeaderName[];
}

/** For whom an operation is: each audience has its page of the reference. */
export type Audience = 'customers' | 'operators';

const customers = 'customers';
const operators = 'operators';

/** `token`: what a program of operators sends as `Authorization: Bearer …`. */
export const tags = {
  Jobs: { audience: customers, text: 'Get a price, pay, and follow a paid call.' },
  Runner: {
    audience: operators,
    text: 'For runners that poll: they lease calls, and complete or fail each.',
    token: 'The `token` of its `[[runners]]` table, with `mode = "lease"`.',
  },
  Chat: { audience: customers, text: "Model chat in OpenAI's format, and the credit of a key." },
  People: { audience: customers, text: 'Sign-in, and the API keys of a user.' },
  Operator: {
    audience: operators,
    text: 'For the operator of the gateway.',
    token: 'An operator token with the scope of the route: `tollbook tokens create NAME --scope calls:read`.',
  },
  Audit: {
    audience: operators,
    text: 'For finance and auditors: every payment, call, refund due and reconciliation.',
    token: 'An operator token: `tollbook tokens create NAME --scope audit:read`.',
  },
  Triggers: {
    audience: operators,
    text: 'Call jobs without a payment, as the operator has configured it.',
    token: 'None: the sender signs each message with the secret of the trigger.',
  },
  Status: {
    audience: operators,
    text: 'Liveness, readiness and public counters.',
    token: 'None; `/status` tells more with an operator token of the scope `status:read`.',
  },
  Log: {
    audience: customers,
    text: 'The tamper-evident log over the ledger: C2SP checkpoints and tiles, RFC 6962 proofs.',
  },
  Reference: { audience: customers, text: 'This document.' },
} as const satisfies Readonly<
  Record<string, { readonly audience: Audience; readonly text: string; readonly token?: string }>
>;
export type Tag = keyof typeof tags;

/** One of the security schemes. `receiptToken` and those that begin with `optional` are not required. */
export type Security =
  | 'receiptToken'
  | 'runnerToken'
  | 'operatorToken'
  | 'apiKey'
  | 'optionalApiKey'
  | 'optionalOperatorToken'
  | 'session';

export interface RequestHeader {
  readonly name: string;
  readonly description: string;
  /** Of a header that the route requires. */
  readonly required?: { readonly example: string };
  /** The schema of the JSON that the header holds in base64. */
  readonly json?: z.ZodType;
}

/** JSON with a schema, or any bytes, of a type that the route does not look at. */
export type RequestBody =
  | { readonly schema: z.ZodType }
  | { readonly bytes: '*/*' | 'application/octet-stream'; readonly description: string };

export interface DescribedAnswer {
  readonly status: number;
  readonly description: string;
  /** Of a JSON body. */
  readonly schema?: z.ZodType;
  /** A constant body of plain text. */
  readonly text?: string;
  /** What the events are, if the answer may be an event stream. */
  readonly events?: string;
  /** The type of another body. */
  readonly bytes?: 'text/plain' | 'text/html' | 'text/csv' | 'application/octet-stream';
  readonly headers?: readonly HeaderName[];
}

/** An operation as its group describes it. */
interface Described extends Partial<Omit<Operation, 'method' | 'path'>> {
  readonly id: string;
  readonly summary: string;
  /** The scope of an operator's token, which the route then requires. */
  readonly scope?: string;
  /** Of a list in pages. */
  readonly page?: z.ZodType;
}

/** The refusals of every route that requires an operator token. */
const operatorRefusals = [
  'unauthorized',
  'forbidden',
  'internal_error',
  'ledger_unavailable',
  'ledger_inconsistent',
] as const satisfies readonly RefusalCode[];

/** The operations of one group, by route. Refusals and errors are those of the group, and those of the operation in addition. */
export function operations(
  group: Pick<Operation, 'tag'> & Partial<Operation>,
  byRoute: Readonly<Record<`${'GET' | 'POST' | 'DELETE'} /${string}`, Described>>,
): Operation[] {
  return Object.entries(byRoute).map(([route, { scope, page, ...own }]) => {
    const [method = '', path = ''] = route.split(' ');
    const { description = '', refusals = [], errors = [] } = own;
    return {
      ...group,
      answers: page ? [{ status: 200, description: 'One page.', schema: page }] : [],
      ...(scope !== undefined && { security: 'operatorToken' }),
      ...own,
      method: method.toLowerCase() as Operation['method'],
      path,
      description:
        scope === undefined ? description : `Requires the scope \`${scope}\`. ${description}`.trim(),
      refusals: [...(group.refusals ?? []), ...refusals, ...(scope === undefined ? [] : operatorRefusals)],
      errors: [...(group.errors ?? []), ...errors],
    };
  });
}

/** For bodies that a client may have cached. */
export const ifNoneMatch: RequestHeader = {
  name: 'If-None-Match',
  description: 'The `ETag` of a cached body.',
};
export const notModified: DescribedAnswer = {
  status: 304,
  description: 'The cached body is current.',
  headers: ['ETag'],
};
