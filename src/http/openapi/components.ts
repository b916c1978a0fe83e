import { z } from 'zod';
import * as job from '../schemas/job.ts';
import * as operator from '../schemas/operator.ts';
import * as payment from '../schemas/payment.ts';
import * as receipts from '../schemas/receipt.ts';
import * as runner from '../schemas/runner.ts';
import * as status from '../schemas/status.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/** The schemas that the document names; all others are written where they are used. */
const named = z.registry<{ id: string }>();
for (const [id, schema] of Object.entries({
  Price: job.price,
  JobInput: job.jobInput,
  PaymentRequired: job.paymentRequired,
  PaymentRequiredV2: payment.paymentRequiredV2,
  RequirementV1: payment.requirementV1,
  RequirementV2: payment.requirementV2,
  PaymentV1: payment.paymentV1,
  PaymentV2: payment.paymentV2,
  ExactPayload: payment.exactPayload,
  Settlement: payment.settlement,
  Payment: payment.paymentSummary,
  Accepted: job.accepted,
  Receipt: receipts.receipt,
  Readiness: status.readiness,
  ReadinessCheck: status.readinessCheck,
  Stats: status.stats,
  LeaseRequest: runner.leaseBody,
  LeasedCall: runner.leasedCall,
  Leases: runner.leases,
  ExtendRequest: runner.extendBody,
  Extended: runner.extended,
  CompleteRequest: runner.completeBody,
  Completed: runner.completed,
  FailRequest: runner.failBody,
  Failed: runner.failed,
  DeadLetter: operator.deadLetter,
  DeadLetters: operator.deadLetters,
  Requeued: operator.requeued,
})) {
  named.add(schema, { id });
}

const uri = (id: string): string => `#/components/schemas/${id}`;
/** Answers hold no defaults, so the form that a client sends is also the one that it gets. */
const params = { io: 'input', override: dropLongPatterns } as const;

/** Zod's own patterns for these say no more to a reader than the format does. */
function dropLongPatterns({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.format === 'uuid' || jsonSchema.format === 'base64') delete jsonSchema.pattern;
}

/** A schema where it is used: a reference if the document names it. */
export function schemaOf(schema: z.ZodType): JsonObject {
  const name = named.get(schema);
  return name ? { $ref: uri(name.id) } : withoutNames(z.toJSONSchema(schema, params));
}

/** All named schemas. */
export function componentSchemas(): JsonObject {
  const { schemas } = z.toJSONSchema(named, { ...params, uri });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, withoutNames(schema)]));
}

/** In OpenAPI a schema's place is its name, and the dialect is the document's. */
function withoutNames(schema: z.core.JSONSchema.BaseSchema): JsonObject {
  const { $schema: _dialect, $id: _id, ...rest } = schema;
  return rest;
}

/** A text that is the base64 of such JSON. */
export function encodedJson(schema: z.ZodType): JsonObject {
  return {
    type: 'string',
    contentEncoding: 'base64',
    contentMediaType: 'application/json',
    contentSchema: schemaOf(schema),
  };
}
