import type { z } from 'zod';
import type { OpenAiErrorName } from '../../domain/errors/openai-error.ts';
import type { RefusalCode } from '../../domain/errors/refusal.ts';
import type { HeaderName } from './headers.ts';

/** One route as the document describes it. The table of these is the whole of what is public. */
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
  /** Every code of the closed table that this route can answer with, and no other. */
  readonly refusals: readonly RefusalCode[];
  /** What every refusal of this route may say beside `error` and `code`. */
  readonly refusalContext?: z.ZodRawShape;
  /** The same of the routing API, whose errors are OpenAI's. */
  readonly errors?: readonly OpenAiErrorName[];
  /** On every answer. */
  readonly headers?: readonly HeaderName[];
}

export const tags = {
  Jobs: 'Ask for a price, pay, and follow what was paid for.',
  Status: 'Whether the gateway lives, whether it can take payments, and what it counted.',
  Runner: 'For runners that poll: calls are leased, and each ends completed or failed.',
  Chat: "Model chat as OpenAI's clients speak it, and what a key has left for it.",
  People: 'Who signs in, and the keys that are theirs.',
  Operator: 'For whoever runs the gateway.',
  Audit: 'For finance and auditors: what became of every payment.',
  Log: 'The tamper-evident log over the ledger, for whoever checks it: C2SP checkpoints and tiles, RFC 6962 proofs.',
  Reference: 'This description.',
} as const;
export type Tag = keyof typeof tags;

/** Who may ask: one of the security schemes. The receipt's token is never demanded, nor is an `optionalApiKey`. */
export type Security =
  | 'receiptToken'
  | 'runnerToken'
  | 'operatorToken'
  | 'apiKey'
  | 'optionalApiKey'
  | 'session';

export interface RequestHeader {
  readonly name: string;
  readonly description: string;
  /** The schema of what the header's base64 holds, where it holds JSON. */
  readonly json?: z.ZodType;
}

/** JSON of a schema, or bytes that no schema describes. */
export type RequestBody =
  | { readonly schema: z.ZodType }
  | { readonly bytes: true; readonly description: string };

export interface DescribedAnswer {
  readonly status: number;
  readonly description: string;
  /** A body of JSON, where there is one. */
  readonly schema?: z.ZodType;
  /** A body of plain text, where there is one. */
  readonly text?: string;
  /** What a stream of events is made of, where the answer may be one. */
  readonly events?: string;
  /** A body of another type, where there is one. */
  readonly bytes?: 'text/plain' | 'application/octet-stream';
  readonly headers?: readonly HeaderName[];
}

/** A body that a client may have already. */
export const ifNoneMatch: RequestHeader = {
  name: 'If-None-Match',
  description: 'An `ETag` that was seen before.',
};
export const notModified: DescribedAnswer = { status: 304, description: 'As it was.', headers: ['ETag'] };
