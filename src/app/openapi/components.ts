import { z } from 'zod';
import * as projections from '../../audit/http/schemas/projections.ts';
import * as credit from '../../chat/http/schemas/credit.ts';
import * as identity from '../../accounts/http/schemas/identity.ts';
import * as job from '../../jobs/http/schemas/job.ts';
import * as log from '../../audit/http/schemas/log.ts';
import * as model from '../../chat/http/schemas/model.ts';
import * as openAi from '../../chat/http/schemas/openai.ts';
import * as operator from '../../jobs/http/schemas/operator.ts';
import * as operatorCredit from '../../chat/http/schemas/operator-credit.ts';
import * as payment from '../../payments/http/payment.ts';
import * as receipts from '../../jobs/http/schemas/receipt.ts';
import * as reconciliation from '../../finance/http/schemas/reconcile.ts';
import * as runner from '../../jobs/http/schemas/runner.ts';
import * as status from '../../ledger/http/status.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/** The schemas under `components`; all others are inlined where they are used. */
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
  SignedPayload: payment.signedPayload,
  Settlement: payment.settlement,
  Payment: payment.paymentSummary,
  Accepted: job.accepted,
  CompletedJob: job.completed,
  Receipt: receipts.receipt,
  Condition: status.condition,
  PartStatus: status.partStatus,
  StatusCheck: status.check,
  Readiness: status.readiness,
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
  DeadLetterCauses: operator.deadLetterCauses,
  Requeued: operator.requeued,
  ListedKey: operatorCredit.listedKey,
  ListedKeys: operatorCredit.listedKeys,
  KeyRequest: operatorCredit.keyRequest,
  IssuedKey: operatorCredit.issuedKey,
  RevokedKey: operatorCredit.revokedKey,
  Account: operatorCredit.account,
  Accounts: operatorCredit.accounts,
  GrantRequest: operatorCredit.grantRequest,
  Granted: operatorCredit.granted,
  ChatRequest: openAi.chatRequest,
  ChatCompletion: openAi.chatCompletion,
  OpenAiError: openAi.openAiErrorBody,
  Model: model.model,
  ModelList: model.modelList,
  Credits: credit.credits,
  KeyState: credit.keyState,
  Generation: credit.generation,
  SiweTerms: identity.siweTerms,
  SiweSignIn: identity.siweVerify,
  SignedIn: identity.signedIn,
  UserKeyRequest: identity.keyRequest,
  NewUserKey: identity.madeKey,
  UserKey: identity.userKey,
  UserKeys: identity.userKeys,
  AuditedPayment: projections.auditedPayment,
  AuditedPayments: projections.auditedPayments,
  PaymentHistory: projections.paymentHistory,
  AuditedCall: projections.auditedCall,
  AuditedCalls: projections.auditedCalls,
  AuditedAccount: projections.auditedAccount,
  AuditedCredit: projections.auditedCredit,
  Totals: projections.totals,
  Reconciliations: reconciliation.reconciliations,
  Reconciliation: reconciliation.reconciliation,
  InclusionProof: log.inclusionProof,
  LogProofs: log.logProofs,
  LogConsistency: log.logConsistency,
})) {
  named.add(schema, { id });
}

const uri = (id: string): string => `#/components/schemas/${id}`;
/** Answers have no defaults, so the input form of a schema describes answers too. */
const params = { io: 'input', override: dropLongPatterns } as const;

/** Zod's patterns for these formats add nothing to the format. */
function dropLongPatterns({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.format === 'uuid' || jsonSchema.format === 'base64') delete jsonSchema.pattern;
}

/** A schema where it is used: a reference if it is under `components`. */
export function schemaOf(schema: z.ZodType): JsonObject {
  const name = named.get(schema);
  return name ? { $ref: uri(name.id) } : withoutNames(z.toJSONSchema(schema, params));
}

/** All named schemas. */
export function componentSchemas(): Readonly<Record<string, JsonObject>> {
  const { schemas } = z.toJSONSchema(named, { ...params, uri });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, withoutNames(schema)]));
}

/** The components that a part of the document references, directly or through other components. */
export function usedComponents<C>(
  referencing: unknown,
  components: Readonly<Record<string, Readonly<Record<string, C>>>>,
): Readonly<Record<string, Readonly<Record<string, C>>>> {
  const used = new Set<string>();
  const visit = (part: unknown): void => {
    for (const [, kind = '', name = ''] of JSON.stringify(part ?? '').matchAll(refPattern)) {
      if (used.has(`${kind}/${name}`)) continue;
      used.add(`${kind}/${name}`);
      visit(components[kind]?.[name]);
    }
  };
  visit(referencing);
  return Object.fromEntries(
    Object.entries(components).map(([kind, all]) => [
      kind,
      Object.fromEntries(Object.entries(all).filter(([name]) => used.has(`${kind}/${name}`))),
    ]),
  );
}

const refPattern = /"\$ref":"#\/components\/(\w+)\/([^"]+)"/g;

/** In OpenAPI the key of a schema is its name, and the document sets the dialect. */
function withoutNames(schema: z.core.JSONSchema.BaseSchema): JsonObject {
  const { $schema: _dialect, $id: _id, ...rest } = schema;
  return rest;
}

/** A string that is the base64 of JSON with this schema. */
export function encodedJson(schema: z.ZodType): JsonObject {
  return {
    type: 'string',
    contentEncoding: 'base64',
    contentMediaType: 'application/json',
    contentSchema: schemaOf(schema),
  };
}
