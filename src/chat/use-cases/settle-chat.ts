import type { ChatProgress } from '../rules/chat-answer.ts';
import type { ChatUsage } from '../rules/chat-usage.ts';
import type { chatEndings } from '../../ledger/rules/chat-events.ts';
import { costMicros, mostMicros } from '../../base/values/price.ts';
import type { LedgerEvent } from '../../ledger/rules/event.ts';
import { traceStep } from '../../base/values/tracing.ts';
import { type PromptSample, samplePrompt } from '../rules/token-count.ts';
import { estimateAside } from '../peers/upstream/side-thread.ts';
import type { CreditCommand } from '../../ledger/store/append-batch.ts';
import type { AdmittedChat } from './admission.ts';
import { spendingOf } from './caller.ts';
import type { ChatContext } from './context.ts';
import { inBackground } from '../../base/runtime/background.ts';

/** A completion as far as the ledger is concerned. */
type LedgerChat = Omit<AdmittedChat, 'request'>;

/** A completion without its request, which may be large and must not stay in memory for as long as the answer takes. */
export interface RunningChat extends LedgerChat {
  readonly prompt: PromptSample;
  readonly wantsUsage: boolean;
  /** How many answers it asks for, if the gateway sets their length; undefined if the request does. */
  readonly openChoices: number | undefined;
}

export function withoutRequest({ request, ...chat }: AdmittedChat): RunningChat {
  const { wantsUsage, maxTokens, n } = request;
  const openChoices = maxTokens === undefined ? n : undefined;
  return { ...chat, prompt: samplePrompt(request), wantsUsage, openChoices };
}

/** How a completion ended, and its upstream's report. */
export interface ChatEnd {
  readonly ending: (typeof chatEndings)[number];
  readonly upstream: string;
  readonly progress: Pick<ChatProgress, 'usage' | 'isUsageMalformed' | 'written'>;
  readonly firstByteMs: number;
  readonly latencyMs: number;
  /** A machine-readable code, when something went wrong. */
  readonly reason?: string;
}

/**
 * Captures the cost of a completion and releases the rest of its hold, after the answer. If this process ends before that,
 * another process captures the whole hold.
 */
export function settleChat(context: ChatContext, chat: RunningChat, end: ChatEnd): void {
  chat.leave();
  recordInBackground(context, chat, async () => {
    const { usage, written } = end.progress;
    const counted = usage ?? (await estimateAside(chat.prompt, written));
    const cost = costOf(chat, counted);
    const isWhole = end.ending === 'completed';
    if (chat.caller.kind === 'x402') chat.caller.order.onEnd({ costMicros: cost.captured, isWhole });
    if (isWhole) noteLength(context, chat, counted);
    await record(context, chat, completedStep(chat, end, { ...counted, ...cost }, usage === undefined));
    const problem = end.progress.isUsageMalformed
      ? 'malformed'
      : cost.uncovered > 0n
        ? 'above_hold'
        : undefined;
    if (problem)
      await context.usageAlert({
        chat_id: chat.chatId,
        upstream: end.upstream,
        model: chat.model.name,
        problem,
      });
  });
}

/** An upstream may report any number of tokens: no answer is longer than its limit. */
function noteLength(
  { typicalLengths }: ChatContext,
  { model, maxTokens, openChoices }: RunningChat,
  { completionTokens }: ChatUsage,
): void {
  if (openChoices !== undefined)
    typicalLengths.note(model.name, Math.min(maxTokens, Math.ceil(completionTokens / openChoices)));
}

/** Releases the hold of a completion of which nothing was delivered: nothing is charged. */
export function releaseChat(
  context: ChatContext,
  chat: LedgerChat,
  reason: string,
  upstream: string | undefined,
): void {
  const { model, holdMicros, caller } = chat;
  chat.leave();
  if (caller.kind === 'x402') caller.order.onEnd({ costMicros: 0n, isWhole: false });
  const failed: LedgerEvent = {
    type: 'chat_failed',
    data: { reason, model: model.name, ...(upstream === undefined ? {} : { upstream }) },
  };
  recordInBackground(context, chat, () =>
    record(context, chat, moveStep(chat, [failed], 0n, holdMicros, false)),
  );
}

/**
 * Short compared with an answer, and long compared with the time to a client's next request: its admission and this settlement are one batch.
 * Until then the hold covers the cost, and the rest of it cannot be spent.
 */
const mayWaitMs = 3;

type Step = Pick<CreditCommand, 'events' | 'credit' | 'refused'>;

interface Cost {
  readonly cost: bigint;
  /** What the customer pays of it: at most the hold. */
  readonly captured: bigint;
  readonly uncovered: bigint;
}

function costOf({ model, holdMicros }: RunningChat, tokens: ChatUsage): Cost {
  const reported = model.price ? costMicros({ ...tokens, price: model.price }) : 0n;
  const cost = reported < mostMicros ? reported : mostMicros;
  const captured = cost < holdMicros ? cost : holdMicros;
  return { cost, captured, uncovered: cost - captured };
}

function completedStep(
  chat: RunningChat,
  end: ChatEnd,
  counted: ChatUsage & Cost,
  isEstimate: boolean,
): Step {
  const { model, holdMicros } = chat;
  const { promptTokens, completionTokens, cachedTokens = 0, cacheWriteTokens = 0 } = counted;
  const { cost, captured, uncovered } = counted;
  const completed: LedgerEvent = {
    type: 'chat_completed',
    data: {
      ending: end.ending,
      model: model.name,
      upstream: end.upstream,
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      ...(cachedTokens > 0 ? { cached_tokens: cachedTokens } : {}),
      ...(cacheWriteTokens > 0 ? { cache_write_tokens: cacheWriteTokens } : {}),
      is_estimate: isEstimate,
      cost_micros: String(cost),
      ...(uncovered > 0n ? { uncovered_micros: String(uncovered) } : {}),
      first_byte_ms: Math.round(end.firstByteMs),
      latency_ms: Math.round(end.latencyMs),
      ...(end.reason === undefined ? {} : { reason: end.reason }),
    },
  };
  return moveStep(chat, [completed], captured, holdMicros - captured, isEstimate);
}

/**
 * The events, their postings and the move of credit. When another process has captured the whole hold meanwhile, a correction
 * is recorded instead and returns the excess.
 */
function moveStep(
  { caller, chatId, holdMicros }: LedgerChat,
  events: readonly LedgerEvent[],
  captured: bigint,
  released: bigint,
  isEstimate: boolean,
): Step {
  const spending = spendingOf(caller);
  if (!spending || holdMicros === 0n) return { events };
  const of = { ...spending, chat_id: chatId };
  const postings: LedgerEvent[] = [];
  if (captured > 0n)
    postings.push({
      type: 'credit_captured',
      data: { ...of, amount_micros: String(captured), is_estimate: isEstimate },
    });
  if (released > 0n)
    postings.push({ type: 'credit_released', data: { ...of, amount_micros: String(released) } });
  const corrected: LedgerEvent = {
    type: 'credit_corrected',
    data: { ...of, amount_micros: String(released) },
  };
  return {
    events: [...events, ...postings],
    credit: { op: 'settle', chatId, capturedMicros: captured, releasedMicros: released },
    ...(released > 0n ? { refused: { gone: [...events, corrected] } } : {}),
  };
}

async function record(context: ChatContext, { chatId }: LedgerChat, step: Step): Promise<void> {
  const outcome = await context.lane.appendCredit(
    { stream: `chat:${chatId}`, ...step },
    { urgent: true, mayWaitMs },
  );
  // this process's heartbeats were missing, and another process has ended the hold
  if (outcome.outcome === 'refused')
    context.log.warn(
      { chat_id: chatId, code: outcome.code },
      'a completion was already settled by another process',
    );
}

function recordInBackground(context: ChatContext, { chatId }: LedgerChat, work: () => Promise<void>): void {
  const traced = traceStep(context.tracing, { name: 'settle completion' }, work);
  inBackground(context, traced, 'a completion could not be settled: its hold stays until it is recovered', {
    chat_id: chatId,
  });
}
