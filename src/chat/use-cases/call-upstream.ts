import type { ModelTarget, UpstreamConfig } from '../../base/config/config.ts';
import { rewriteForUpstream } from '../rules/chat-request.ts';
import { openAiError, type OpenAiError } from '../../base/errors/openai-error.ts';
import { refusedRequestError } from '../rules/refused-request.ts';
import type { Upstream } from '../peers/upstream/upstream.ts';
import type { Slot } from '../peers/upstream/slots.ts';
import type { UpstreamAnswer, UpstreamCompleted, UpstreamStreaming } from '../peers/upstream/answer.ts';
import { type Attempt, healthSign } from '../peers/upstream/health.ts';
import type { AdmittedChat } from './admission.ts';
import { type Refused, refuse } from './answer.ts';
import type { Caller } from './caller.ts';
import type { ChatContext } from './context.ts';
import { traceUpstream } from './trace-chat.ts';

/** An upstream's answer has begun. The attempt is reported again when its stream ends. */
export interface Begun {
  readonly kind: 'begun';
  readonly upstream: string;
  readonly answer: UpstreamCompleted | UpstreamStreaming;
  readonly attempt: Attempt;
}

/** No upstream answered; how the client is refused. */
export interface NotBegun {
  readonly kind: 'not_begun';
  /** A machine-readable code. */
  readonly reason: string;
  /** The last one that was called. */
  readonly upstream: string | undefined;
  readonly refused: Refused;
}

interface Candidate {
  readonly target: ModelTarget;
  readonly upstream: Upstream;
  readonly config: UpstreamConfig;
}

/** A slot at one of the model's upstreams. */
export interface ReservedSlot {
  readonly upstream: Upstream;
  readonly slot: Slot;
}

/** Takes a slot before the completion is paid; undefined if all upstreams of its model are busy. */
export function reserveSlot(context: ChatContext, chat: AdmittedChat): ReservedSlot | undefined {
  for (const { upstream } of candidatesOf(context, chat)) {
    const slot = upstream.reserve(chat.model.price === undefined);
    if (slot) return { upstream, slot };
  }
  return undefined;
}

/**
 * Calls the model's upstreams one after another, chosen by weight and health, until one begins to answer; no other is called
 * after its first byte.
 * @param signal its abort says that the client left: no other upstream is called
 * @param cutShort its abort ends the call in any case
 * @param reserved used at its upstream if that one is called, else released
 */
export async function callUpstream(
  context: ChatContext,
  chat: AdmittedChat,
  signal: AbortSignal,
  cutShort: AbortSignal,
  reserved?: ReservedSlot,
): Promise<Begun | NotBegun> {
  let unused = reserved;
  const takeSlot = (upstream: Upstream): Slot | undefined => {
    if (unused?.upstream !== upstream) return undefined;
    const { slot } = unused;
    unused = undefined;
    return slot;
  };
  try {
    return await callOneAfterAnother(context, chat, signal, keepsRunning(chat) ? cutShort : signal, takeSlot);
  } finally {
    unused?.slot.release();
  }
}

/**
 * An answer that is not a stream costs the operator its full price, also when its client has left: only at its end is known
 * how much that is. A spend pays its whole amount, and a free model nothing; a client that pays by x402 is waited for until its payment
 * can hardly be settled any more.
 */
function keepsRunning({ request, model, spend, caller }: AdmittedChat): boolean {
  return !request.stream && model.price !== undefined && !spend && caller.kind !== 'x402';
}

async function callOneAfterAnother(
  context: ChatContext,
  chat: AdmittedChat,
  signal: AbortSignal,
  upstreamSignal: AbortSignal,
  takeSlot: (upstream: Upstream) => Slot | undefined,
): Promise<Begun | NotBegun> {
  const left = candidatesOf(context, chat);
  let last: NotBegun | undefined;
  for (;;) {
    const choice = context.health.choose(
      left.map(({ target, config }) => ({ name: config.name, model: target.model, weight: config.weight })),
      voterOf(chat.caller),
    );
    if (choice.kind === 'none') return last ?? unavailable(choice.retryAfterMs);
    const { attempt } = choice;
    const at = left.findIndex(
      ({ target, config }) => config.name === attempt.name && target.model === attempt.model,
    );
    const [candidate] = left.splice(at, 1);
    if (!candidate) throw new Error('the chosen upstream is not among the candidates');
    // nothing is begun for a client that has left before
    const until = signal.aborted ? signal : upstreamSignal;
    const slot = takeSlot(candidate.upstream);
    const answer = await traceUpstream(context.tracing, chat.model.name, candidate.target, () =>
      ask(chat, candidate, until, slot),
    );
    attempt.report(healthSign(answer));
    if (answer.kind === 'completed' || answer.kind === 'streaming')
      return { kind: 'begun', upstream: attempt.name, answer, attempt };
    last = judge(answer, attempt.name);
    // every upstream would refuse this request, or write an answer as long
    const isFinal =
      (answer.kind === 'refused' && answer.fault === 'request') ||
      (answer.kind === 'failed' && answer.cause === 'too_large');
    if (isFinal || signal.aborted || left.length === 0) return last;
    context.log.warn(
      { chat_id: chat.chatId, upstream: attempt.name, reason: last.reason },
      'an upstream failed: the next one is called',
    );
  }
}

/** Names the caller for the circuit breaker: all keys of an account count as one caller. */
function voterOf(caller: Caller): string {
  switch (caller.kind) {
    case 'api_key':
      return `account:${caller.key.accountId}`;
    case 'session':
      return `account:${caller.accountId}`;
    case 'spend_auth':
      return `spend:${caller.spend.auth.commitment}`;
    case 'x402':
      return `payer:${caller.payer}`;
    case 'anonymous':
      return caller.client;
  }
}

function candidatesOf({ upstreams, settings }: ChatContext, { model }: AdmittedChat): Candidate[] {
  return model.targets.flatMap((target) => {
    const upstream = upstreams.get(target.upstream);
    const config = settings.upstreams.find(({ name }) => name === target.upstream);
    return upstream && config ? [{ target, upstream, config }] : [];
  });
}

function ask(
  { request, model, maxTokens }: AdmittedChat,
  { target, upstream }: Candidate,
  signal: AbortSignal,
  slot: Slot | undefined,
): Promise<UpstreamAnswer> {
  const isLimited = model.price !== undefined || request.maxTokens !== undefined;
  const body = rewriteForUpstream(request, {
    upstreamModel: target.model,
    maxTokens: isLimited ? maxTokens : undefined,
    forceUsage: true,
  });
  const isFree = model.price === undefined;
  return upstream.complete(body, { stream: request.stream, signal, isFree, ...(slot && { slot }) });
}

type Failure = Exclude<UpstreamAnswer, UpstreamCompleted | UpstreamStreaming>;

function judge(answer: Failure, upstream: string): NotBegun {
  const notBegun = (reason: string, error: OpenAiError, retryAfterSecs?: number): NotBegun => ({
    kind: 'not_begun',
    reason,
    upstream,
    refused: refuse(error, retryAfterSecs === undefined ? {} : { retryAfterSecs }),
  });
  switch (answer.kind) {
    case 'busy':
      return notBegun('upstream_busy', openAiError('upstream_unavailable'), 1);
    case 'refused':
      return answer.fault === 'request'
        ? notBegun(`status_${answer.status}`, refusedRequestError(answer.error))
        : notBegun(
            `status_${answer.status}`,
            openAiError('upstream_unavailable'),
            answer.retryAfterSecs ?? 5,
          );
    case 'failed': {
      const { cause, retryAfterSecs } = answer;
      if (/timeout|stalled/.test(cause))
        return notBegun(cause, openAiError('upstream_timeout'), retryAfterSecs);
      const isAway = cause === 'unreachable' || cause === 'closed';
      return notBegun(cause, openAiError(isAway ? 'upstream_unavailable' : 'upstream_error'), retryAfterSecs);
    }
  }
}

function unavailable(retryAfterMs: number | undefined): NotBegun {
  const retryAfterSecs = Math.max(1, Math.ceil((retryAfterMs ?? 5_000) / 1_000));
  return {
    kind: 'not_begun',
    reason: 'no_upstream',
    upstream: undefined,
    refused: refuse(openAiError('upstream_unavailable'), { retryAfterSecs }),
  };
}
