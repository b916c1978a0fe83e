import type { JobsConfig, RouteConfig } from '../../../base/config/config.ts';
import { flowOf } from '../../../base/config/routes.ts';
import { settleMarginSecs } from '../../../payments/rules/payment-window.ts';
import type { Hex } from '../../../base/values/primitives.ts';
import type { LoggedPorts } from '../../../calls/use-cases/record-attempt.ts';
import type { ResultStore } from '../../../calls/peers/results/result-store.ts';
import type { StreamWatch } from '../../../calls/use-cases/stream-watch.ts';
import type { Upstreams } from '../../peers/upstream.ts';
import type { AnswerHead } from './answer-client.ts';
import type { PaymentState, QuoteState } from '../../../payments/rules/quote-state.ts';
import type { JobHead, RouteOfRequest } from '../job-request.ts';

/** A paid request for a route. */
export interface RouteRequest {
  readonly route: RouteOfRequest;
  readonly digest: Hex;
  readonly callId: number;
  readonly method: string;
  /** Path and query, as the client sent them. */
  readonly target: string;
  readonly body: Buffer;
  /** The payment was known before. */
  readonly isReplayed: boolean;
}

export interface RoutePorts extends LoggedPorts {
  readonly upstreams: Upstreams;
  readonly streams: StreamWatch;
  /** Keeps answers that are too long for the database; undefined if there is no such store. */
  readonly results: ResultStore | undefined;
  readonly stopping: () => boolean;
}

/** What a client got. `answered`: all of it, or its connection was cut. */
export type RouteOutcome = { readonly kind: 'answered' } | RouteRefusal;

/** Why a paid request has no answer now: it is charged once, whatever happens. */
export interface RouteRefusal {
  readonly kind: 'refused';
  readonly code:
    | 'upstream_failed'
    | 'answer_under_way'
    | 'answer_not_kept'
    | 'refund_due'
    | 'result_store_unavailable';
  readonly reason?: string;
  /** Of the answer that was delivered. */
  readonly sha256?: string;
}

/** An answer in memory. */
export interface WholeAnswer extends AnswerHead {
  readonly body: Buffer;
}

/** A payment whose process is gone while its upstream was asked. */
export interface Unanswered {
  readonly digest: Hex;
  readonly state: QuoteState;
  readonly known: PaymentState;
}

/** How much longer than its upstream may take an attempt counts as under way. */
export const graceSecs = 3;

/** How long an attempt may take, where the upstream answers first. */
export function attemptSecs({ timeoutMs }: RouteConfig): number {
  return Math.ceil(timeoutMs / 1_000) + graceSecs;
}

type Routed = Pick<JobHead, 'route' | 'method'>;

/** Whether a request is answered before its payment is settled. */
export function isAnsweredFirst(request: Routed): request is Routed & { readonly route: RouteOfRequest } {
  return request.route !== undefined && flowOf(request.route.config, request.method) === 'authorization';
}

/** How long before its authorization ends a payment of this request must be started. */
export function startMarginSecs(
  { facilitatorSettleTimeoutMs }: Pick<JobsConfig, 'facilitatorSettleTimeoutMs'>,
  request: Routed,
): number {
  const answerSecs = isAnsweredFirst(request) ? attemptSecs(request.route.config) : 0;
  return settleMarginSecs(facilitatorSettleTimeoutMs) + answerSecs;
}
