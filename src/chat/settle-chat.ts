import type { ChatProgress } from '../domain/chat/chat-answer.ts';
import type { chatEndings } from '../domain/events/chat-events.ts';
import { costMicros } from '../domain/credit/price.ts';
import type { LedgerEvent } from '../domain/events/event.ts';
import { estimateUsage, type PromptSample, samplePrompt } from '../domain/chat/token-count.ts';
import type { CreditCommand } from '../store/append-batch.ts';
import type { AdmittedChat } from './admit-chat.ts';
import { spendingOf } from './caller.ts';
import type { ChatContext } from './context.ts';
import { inBackground } from '../runtime/background.ts';

/** A completion as far as the ledger is concerned. */
type ChatInHand = Omit<AdmittedChat, 'request'>;

/** A completion without its request: it may be large, and answers take long. */
export interface AskedChat extends ChatInHand {
  readonly prompt: PromptSample;
  readonly wantsUsage: boolean;
}

export function asked({ request, ...chat }: AdmittedChat): AskedChat {
  return { ...chat, prompt: samplePrompt(request), wantsUsage: request.wantsUsage };
}

/** How a completion ended, with what its upstream told of it. */
export interface ChatEnd {
  readonly ending: (typeof chatEndings)[number];
  readonly upstream: string;
  readonly progress: Pick<ChatProgress, 'usage' | 'written'>;
  readonly firstByteMs: number;
  readonly latencyMs: number;
  /** A machine word, where something went wrong. */
  readonly reason?: string;
}

/**
 * Takes what a completion cost and frees the rest of its hold, behind the answer: its client does not wait for it. Should
 * this process end first, another takes the whole hold.
 */
export function settleChat(context: ChatContext, chat: AskedChat, end: ChatEnd): void {
  recordInBackground(context, chat, async () => {
    const { usage, written } = end.progress;
    const counted = usage ?? (await estimateUsage(chat.prompt, [written]));
    await record(context, chat, completedStep(chat, end, counted, usage === undefined));
  });
}

/** Nothing was delivered: nothing is charged. */
export function releaseChat(
  context: ChatContext,
  chat: ChatInHand,
  reason: string,
  upstream: string | undefined,
): void {
  const { model, holdMicros } = chat;
  const failed: LedgerEvent = {
    type: 'chat_failed',
    data: { reason, model: model.name, ...(upstream === undefined ? {} : { upstream }) },
  };
  recordInBackground(context, chat, () =>
    record(context, chat, moveStep(chat, [failed], 0n, holdMicros, false)),
  );
}

type Step = Pick<CreditCommand, 'events' | 'credit' | 'refused'>;

function completedStep(
  chat: AskedChat,
  end: ChatEnd,
  { promptTokens, completionTokens }: { readonly promptTokens: number; readonly completionTokens: number },
  isEstimate: boolean,
): Step {
  const { model, holdMicros } = chat;
  const cost = model.price ? costMicros({ promptTokens, completionTokens, price: model.price }) : 0n;
  const captured = cost < holdMicros ? cost : holdMicros;
  const completed: LedgerEvent = {
    type: 'chat_completed',
    data: {
      ending: end.ending,
      model: model.name,
      upstream: end.upstream,
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      is_estimate: isEstimate,
      cost_micros: String(cost),
      ...(cost > captured ? { uncovered_micros: String(cost - captured) } : {}),
      first_byte_ms: Math.round(end.firstByteMs),
      latency_ms: Math.round(end.latencyMs),
      ...(end.reason === undefined ? {} : { reason: end.reason }),
    },
  };
  return moveStep(chat, [completed], captured, holdMicros - captured, isEstimate);
}

/**
 * The events with the postings behind them, and the move that they speak of. Where another process took the whole hold
 * meanwhile, they are told as a correction, and what was too much comes back.
 */
function moveStep(
  { caller, chatId, holdMicros }: ChatInHand,
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

async function record(context: ChatContext, { chatId }: ChatInHand, step: Step): Promise<void> {
  const outcome = await context.lane.appendCredit({ stream: `chat:${chatId}`, ...step }, { urgent: true });
  // this process was not seen for a while, and another has taken the hold for it
  if (outcome.outcome === 'refused')
    context.log.warn({ chat_id: chatId, code: outcome.code }, 'a completion was settled by somebody else');
}

function recordInBackground(context: ChatContext, { chatId }: ChatInHand, work: () => Promise<void>): void {
  inBackground(context, work(), 'a completion could not be settled: its hold stays until it is recovered', {
    chat_id: chatId,
  });
}
