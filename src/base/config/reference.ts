import { z } from 'zod';
import { alertsShape } from './alerts.ts';
import { chatShape } from './chat.ts';
import { identityShape, providerShape } from './identity.ts';
import { jetStreamShape } from './jetstream.ts';
import { anchorShape, logShape } from './log.ts';
import { metricsShape } from './metrics.ts';
import { modelShape } from './models.ts';
import { facilitatorShape } from './facilitator.ts';
import { networkShape } from './networks.ts';
import { offerReceiptShape } from './offer-receipt.ts';
import { consoleShape, pagesShape } from './pages.ts';
import { plainShapes } from './plain-tables.ts';
import { policyShape } from './policies.ts';
import { sourceShape } from './rates.ts';
import { resultStoreShape } from './result-store.ts';
import { gatewayShape, jobsShape } from './root.ts';
import { routeListenerShape, routeShape } from './routes.ts';
import { runnerShape } from './runners.ts';
import { spendShape } from './spend.ts';
import { isReloadable, type Shape } from './table.ts';
import { tokenShape } from './tokens.ts';
import { topUpShape } from './top-ups.ts';
import { tracesShape } from './traces.ts';
import { upstreamShape } from './upstreams.ts';
import { jobPrice } from './values.ts';
import { triggerShape, triggerShapes } from './triggers.ts';

/** A key of the operator's file, as the schema declares it. */
export interface KeyReference {
  readonly name: string;
  /** In words, with its bounds. */
  readonly type: string;
  /** As TOML; undefined if there is none. */
  readonly byDefault: string | undefined;
  readonly isRequired: boolean;
  readonly isReloadable: boolean;
  readonly meaning: string;
}

/** A table of the operator's file. Keys that a table shares with one before it are listed there alone. */
export interface TableReference {
  /** As TOML writes it; empty for the top of the file. */
  readonly header: string;
  readonly keys: readonly KeyReference[];
}

/** Every table, in the order of the page. `kind` of a trigger decides which of the three last tables of triggers follow. */
const tables: readonly (readonly [header: string, shape: Shape])[] = [
  ['', { ...gatewayShape, ...jobsShape }],
  ['[job_prices.SERVICE]', { JOB: jobPrice.describe('Price of this job of the service') }],
  ['[[accepted_tokens]]', tokenShape],
  ['[[accepted_tokens.rates]]', sourceShape],
  ['[[networks]]', networkShape],
  ['[[facilitators]]', facilitatorShape],
  ['[[job_policies]]', policyShape],
  ['[offer_receipt]', offerReceiptShape],
  ['[route_listener]', routeListenerShape],
  ['[[routes]]', routeShape],
  ['[[runners]]', runnerShape],
  ['[jetstream]', jetStreamShape],
  ['[delivery]', plainShapes.delivery],
  ['[result_store]', resultStoreShape],
  ['[callbacks]', plainShapes.callbacks],
  ['[[triggers]]', triggerShape],
  ['[[triggers]] with kind = "webhook"', without(triggerShapes.webhook, triggerShape)],
  ['[[triggers]] with kind = "cron"', without(triggerShapes.cron, triggerShape)],
  ['[[triggers]] with kind = "chain"', without(triggerShapes.chain, triggerShape)],
  ['[limits]', plainShapes.limits],
  ['[retention]', plainShapes.retention],
  ['[alerts]', alertsShape],
  ['[discovery]', plainShapes.discovery],
  ['[metrics]', metricsShape],
  ['[traces]', tracesShape],
  ['[chat]', chatShape],
  ['[[upstreams]]', upstreamShape],
  ['[[models]]', modelShape],
  ['[spend]', spendShape],
  ['[[top_ups]]', topUpShape],
  ['[identity]', identityShape],
  ['[[identity.providers]]', providerShape],
  ['[pages]', pagesShape],
  ['[console]', consoleShape],
  ['[log]', logShape],
  ['[[log.anchors]]', anchorShape],
];

/** Every key that the operator's file may have. */
export function configReference(): readonly TableReference[] {
  return tables.map(([header, shape]) => ({
    header,
    keys: Object.entries(shape).flatMap(([key, schema]) =>
      isTableOfKeys(schema) ? [] : [keyOf(key, schema)],
    ),
  }));
}

/** A key whose table is listed with its own header. */
function isTableOfKeys(schema: z.ZodType): boolean {
  return schema instanceof z.ZodUnknown && schema.meta()?.description === undefined;
}

function keyOf(key: string, schema: z.ZodType): KeyReference {
  const byDefault = defaultOf(schema);
  return {
    name: key,
    type: typeOf(schema),
    byDefault,
    isRequired: byDefault === undefined && !schema.safeParse(undefined).success,
    isReloadable: isReloadable(schema),
    meaning: schema.meta()?.description ?? '',
  };
}

/** What the innermost schema that says it says; the other keys are texts and lists. */
function typeOf(schema: z.ZodType): string {
  const type = schema.meta()?.['type'];
  if (typeof type === 'string') return type;
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodOptional) return typeOf(inner(schema));
  if (schema instanceof z.ZodPipe) return typeOf(typed(schema.def.in));
  if (schema instanceof z.ZodArray) return `list: ${typeOf(typed(schema.element))}`;
  return 'text';
}

function inner(schema: z.ZodDefault | z.ZodOptional): z.ZodType {
  return typed(schema.def.innerType);
}

/** zod's definitions name the types of its core; the schemas of the shapes have all methods. */
function typed(schema: z.core.$ZodType): z.ZodType {
  return schema as z.ZodType;
}

function defaultOf(schema: z.ZodType): string | undefined {
  const value: unknown = schema instanceof z.ZodDefault ? schema.def.defaultValue : undefined;
  if (value === undefined) return undefined;
  if (typeof value === 'number') return value.toLocaleString('en').replaceAll(',', '_');
  return typeof value === 'bigint' ? `"${value}"` : JSON.stringify(value);
}

function without(shape: Shape, other: Shape): Shape {
  return Object.fromEntries(Object.entries(shape).filter(([key]) => !Object.hasOwn(other, key)));
}
