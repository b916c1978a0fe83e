import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { WebhookTrigger } from '../../../base/config/triggers.ts';
import { encodedBody, isCarriable, isPlain } from '../../../base/values/job-input.ts';
import type { JobsContext } from '../../use-cases/context.ts';
import { nowSecs } from '../../../ledger/store/ledger.ts';
import { addressBudgetKey, type Charge } from '../../../base/runtime/budget.ts';
import { logSecondSecret } from '../../../base/runtime/second-secret.ts';
import { triggerCall, type TriggerResult } from '../../use-cases/triggers/trigger-call.ts';
import { findSigningSecret, readWebhookHead, type WebhookHead } from '../../use-cases/triggers/webhook.ts';
import type { TriggeredJson } from '../schemas/trigger.ts';
import { sendRefusal } from '../../../ledger/http/errors.ts';
import { limitInFlight } from '../../../base/http/in-flight.ts';
import type { RequestBodies } from '../../../base/http/request-bodies.ts';
import { createRequestField } from '../../../base/http/request-field.ts';
import { noteFacts } from '../../../base/http/request-log.ts';
import { addressOf, declaredBytesOf } from '../../../base/http/request-values.ts';
import { createWaitLimit } from '../../../ledger/http/wait-limit.ts';

/** A request whose headers were taken. */
interface Opened {
  readonly context: JobsContext;
  readonly trigger: WebhookTrigger;
  readonly head: WebhookHead;
  readonly charge: Charge;
}

interface WebhookRoute {
  readonly Params: { readonly trigger: string };
}

const openedField = createRequestField<Opened>('openedWebhook');
/** Memory per byte of a body: its pieces and the whole. */
const workFactor = 2;

/**
 * POST /triggers/webhook/{trigger}: a signed message makes a call. Until its signature is verified it costs the client's budget, a look at
 * its headers and the reading of its body as bytes; nothing of it is parsed.
 */
export function webhookTriggerRoutes(current: () => JobsContext, bodies: RequestBodies) {
  return async (app: FastifyInstance): Promise<void> => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (request: FastifyRequest, payload: IncomingMessage) =>
      bodies.read(request, payload, { maxBytes: openedOf(request).trigger.maxBodyBytes, workFactor }),
    );
    const { lane, log, config } = current();
    const waitLimit = createWaitLimit({ lane, log, refused: { kind: 'unavailable' } as const });
    app.addHook('onClose', async () => waitLimit.end());
    app.addHook('onRequest', (request, reply, done) => {
      if (lane.state.halt) sendRefusal(request, reply, 'ledger_inconsistent');
      else done();
    });
    const inFlight = limitInFlight(
      app,
      config.limits.maxInFlightRequests,
      (request, reply) => sendRefusal(request, reply, 'overloaded', { reason: 'max_in_flight_requests' }),
      bodies.release,
    );
    openedField.addTo(app);
    const onRequest = (request: WebhookRequest, reply: FastifyReply, done: () => void): void => {
      if (open(current(), request, reply)) done();
    };
    app.post<WebhookRoute>('/triggers/webhook/:trigger', { onRequest }, async (request, reply) => {
      const { context, trigger, head, charge } = openedOf(request);
      const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
      const signedWith = findSigningSecret(trigger, head, body);
      if (!signedWith) return sendRefusal(request, reply, 'webhook_signature_mismatch');
      if (signedWith === 'second') logSecondSecret(log, `triggers.${trigger.name}.secret`);
      charge.refund();
      const contentType = request.headers['content-type'];
      const { kind, name, serviceId, jobIndex } = trigger;
      const order = { kind, name, id: head.id, job: { serviceId, jobIndex }, body, contentType };
      const flow = triggerCall(context, order);
      inFlight.keep(request, flow);
      return sendResult(request, reply, await waitLimit.within(flow));
    });
  };
}

type WebhookRequest = FastifyRequest<WebhookRoute>;

function openedOf(request: FastifyRequest): Opened {
  const opened = openedField.of(request);
  if (!opened) throw new Error('a webhook was not opened');
  return opened;
}

/** Whether the body is worth reading; otherwise the request is answered. */
function open(context: JobsContext, request: WebhookRequest, reply: FastifyReply): boolean {
  const charge = context.budget.open();
  charge.take(addressBudgetKey(addressOf(request)));
  const retryAfterSecs = charge.waitSecs();
  if (retryAfterSecs > 0) return refuse(request, reply, 'too_many_attempts', { retryAfterSecs });
  const { trigger: name } = request.params;
  const trigger = findWebhookTrigger(context, name);
  if (!trigger) return refuse(request, reply, 'trigger_not_found');
  const read = readWebhookHead(request.headers, trigger, nowSecs(context));
  if (read.kind === 'malformed') return refuse(request, reply, 'invalid_webhook');
  if (read.kind === 'out_of_time')
    return refuse(request, reply, 'webhook_signature_mismatch', { reason: read.kind });
  if (!isCarriable(request.headers['content-type'])) return refuse(request, reply, 'invalid_content_type');
  if (!isPlain(request.headers['content-encoding']))
    return refuse(request, reply, 'unsupported_media_type', { context: { details: [encodedBody] } });
  if (declaredBytesOf(request.headers) > trigger.maxBodyBytes)
    return refuse(request, reply, 'body_too_large');
  openedField.set(request, { context, trigger, head: read.head, charge });
  return true;
}

function findWebhookTrigger({ config }: JobsContext, name: string): WebhookTrigger | undefined {
  for (const trigger of config.triggers)
    if (trigger.kind === 'webhook' && trigger.name === name) return trigger;
  return undefined;
}

function refuse(...refusal: Parameters<typeof sendRefusal>): false {
  sendRefusal(...refusal);
  return false;
}

function sendResult(
  request: WebhookRequest,
  reply: FastifyReply,
  result: TriggerResult | { readonly kind: 'unavailable' },
): FastifyReply {
  switch (result.kind) {
    case 'repeated':
    case 'triggered': {
      const { callId, idempotencyKey } = result;
      noteFacts(request, { call_id: callId });
      if (result.kind === 'repeated') reply.header('idempotent-replayed', 'true');
      const body: TriggeredJson = { status: 'triggered', call_id: callId, idempotency_key: idempotencyKey };
      return reply.code(202).header('cache-control', 'no-store').send(body);
    }
    case 'conflict':
      return sendRefusal(request, reply, 'webhook_id_conflict');
    case 'busy':
      return sendRefusal(request, reply, 'enqueue_failed', { reason: result.reason });
    case 'unavailable':
      return sendRefusal(request, reply, 'ledger_unavailable');
  }
}
