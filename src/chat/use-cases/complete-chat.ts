import { readChatRequest } from '../rules/chat-request.ts';
import { openAiError } from '../../base/errors/openai-error.ts';
import type { StreamEnding, UpstreamCompleted, UpstreamStreaming } from '../peers/upstream/answer.ts';
import { healthSign } from '../peers/upstream/health.ts';
import type { AdmittedChat } from './admission.ts';
import { admitChat } from './admit-chat.ts';
import { type ChatAnswer, type Refused, refuse } from './answer.ts';
import { authorizeSpend } from './spend/authorize-spend.ts';
import { countRefusal, refuseEarly } from './count-refusal.ts';
import { type Begun, callUpstream, type ReservedSlot, reserveSlot } from './call-upstream.ts';
import { type Caller, spendingOf } from './caller.ts';
import { mayAnswerBeforeLanding } from './spend/exposure.ts';
import type { ChatContext, SpendContext } from './context.ts';
import { releaseChat, type RunningChat, settleChat, withoutRequest } from './settle-chat.ts';
import { traceAdmission } from './trace-chat.ts';
import { refuseSpend } from './refuse-spend.ts';
import { earnSpend, releaseSpend } from './spend/record-spend.ts';
import type { AcceptedSpend } from './spend/spend.ts';
import { within } from '../../base/runtime/within.ts';

/** How long an answer waits for its hold to be marked; after that the client is refused with `ledger_unavailable`. */
const markTimeoutMs = 5_000;
/** The abort reason when the client closed its connection. */
export const clientLeft = 'the connection is closed';
/** Added to an upstream's total time-out before its stream is aborted. */
const graceMs = 5_000;

/** Reads a request and admits or refuses its completion. Throws only when the ledger cannot be reached. */
export async function requestChat(
  context: ChatContext,
  caller: Caller,
  body: Buffer,
): Promise<AdmittedChat | Refused> {
  if (context.tooLate()) return refuse(openAiError('overloaded'), { retryAfterSecs: 1 });
  const admission = (): Promise<AdmittedChat | Refused> => readAndAdmit(context, caller, body);
  const result = refuseEarly(context, caller) ?? (await traceAdmission(context.tracing, admission));
  return result.kind === 'refused' ? countRefusal(context, caller, result) : result;
}

async function readAndAdmit(
  context: ChatContext,
  caller: Caller,
  body: Buffer,
): Promise<AdmittedChat | Refused> {
  if (caller.kind === 'anonymous' && body.length > context.settings.anonymousMaxBodyBytes)
    return refuse(openAiError('body_too_large'));
  const request = readChatRequest(body);
  return 'invalid' in request ? refuse(request.invalid) : admitChat(context, caller, request, body);
}

/**
 * Makes an admitted completion: calls an upstream, passes its answer on and settles its cost. An abort of `signal` closes the
 * upstream immediately; the work done so far is charged, by a spend with its whole amount. An answer that is not a stream and is paid with
 * credit is read to its end, and its cost is charged; `cutShort` ends that too. Never throws. Waits for the ledger only
 * up to a time limit, so that the client learns how the completion went; but until the ledger answers if it has to hold that
 * a spend is earned, because a delivered answer must be paid, and a refused one must not.
 */
export async function completeChat(
  context: ChatContext,
  chat: AdmittedChat,
  signal: AbortSignal,
  cutShort: AbortSignal,
): Promise<ChatAnswer> {
  const landed = await landSpend(context, chat, signal);
  if (landed.kind === 'refused') return landed;
  const startedAtMs = performance.now();
  const begun = await callUpstream(context, chat, signal, cutShort, landed.reserved);
  const { chatId, limit } = chat;
  if (begun.kind === 'not_begun') {
    const isLeft = begun.reason === 'aborted';
    if (begun.upstream !== undefined && isLeft && (await paysForLeaving(context, chat, signal)))
      settleLeft(context, withoutRequest(chat), begun.upstream, performance.now() - startedAtMs);
    else {
      await releaseSpendOf(context, chat, begun.reason);
      releaseChat(context, chat, begun.reason, begun.upstream);
    }
    return { ...begun.refused, limit };
  }
  const { answer } = begun;
  // an answer is passed on only once a crash of this process can no longer leave it unpaid; before that, a crash charges nothing
  const isHeld = chat.holdMicros > 0n && spendingOf(chat.caller) !== undefined;
  if (isHeld && !(await startHold(context, chat))) {
    if (answer.kind === 'streaming') answer.abort();
    releaseChat(context, chat, 'hold_not_marked', begun.upstream);
    return refuse(openAiError('ledger_unavailable'), { limit, retryAfterSecs: 2 });
  }
  if (!(await earnSpendOf(context, chat))) {
    // another process has released the spend because this one's heartbeats were missing
    if (answer.kind === 'streaming') answer.abort();
    releaseChat(context, chat, 'spend_taken_away', begun.upstream);
    return refuse(openAiError('overloaded'), { limit, retryAfterSecs: 2 });
  }
  if (answer.kind === 'streaming') return stream(context, withoutRequest(chat), begun, answer);
  settleWhole(context, withoutRequest(chat), begun.upstream, answer, signal.reason === clientLeft);
  return { kind: 'whole', chatId, body: answer.body, limit };
}

/** Ends an admitted chat whose client already got `ledger_unavailable`: no upstream was called, nothing is charged. */
export function dropChat(context: ChatContext, chat: AdmittedChat): void {
  releaseChat(context, chat, 'not_waited_for', undefined);
  void releaseSpendOf(context, chat, 'not_waited_for');
}

/**
 * A spend lands on its chain before an upstream is called, unless its account's exposure allows a later landing. Before that a slot
 * is taken at an upstream, so that no spend lands for a request that no upstream has room for.
 */
async function landSpend(
  context: ChatContext,
  chat: AdmittedChat,
  signal: AbortSignal,
): Promise<Refused | { readonly kind: 'landed'; readonly reserved?: ReservedSlot }> {
  const { spending } = context;
  if (!chat.spend || !spending) return { kind: 'landed' };
  const reserved = reserveSlot(context, chat);
  if (!reserved) {
    await releaseSpend(spending, chat.spend, 'upstream_busy');
    releaseChat(context, chat, 'upstream_busy', undefined);
    return refuse(openAiError('upstream_unavailable'), { limit: chat.limit, retryAfterSecs: 1 });
  }
  const result = await landNow(spending, chat.spend, signal).catch((error: unknown) => {
    reserved.slot.release();
    throw error;
  });
  if (result.kind === 'authorized') return { kind: 'landed', reserved };
  reserved.slot.release();
  const refused = refuseSpend(result);
  const { code } = refused.error.body.error;
  releaseChat(context, chat, code, undefined);
  await releaseSpend(spending, chat.spend, code);
  return { ...refused, limit: chat.limit };
}

async function landNow(
  spending: SpendContext,
  spend: AcceptedSpend,
  signal: AbortSignal,
): ReturnType<typeof authorizeSpend> {
  if (await mayAnswerBeforeLanding(spending, spend)) return { kind: 'authorized' };
  return authorizeSpend(spending, spend, signal);
}

async function releaseSpendOf(
  { spending }: ChatContext,
  { spend }: AdmittedChat,
  reason: string,
): Promise<void> {
  if (spending && spend) await releaseSpend(spending, spend, reason);
}

/** True if no spend pays for the chat. */
async function earnSpendOf({ spending }: ChatContext, { spend }: AdmittedChat): Promise<boolean> {
  return !spending || !spend || (await earnSpend(spending, spend));
}

/**
 * A client that leaves while an upstream works pays for that work; by a spend, which pays its whole amount, only when the
 * client itself closed the connection. Otherwise one nonce would buy that work repeatedly.
 */
async function paysForLeaving(
  context: ChatContext,
  chat: AdmittedChat,
  signal: AbortSignal,
): Promise<boolean> {
  return !chat.spend || (signal.reason === clientLeft && (await earnSpendOf(context, chat)));
}

async function startHold(context: ChatContext, { chatId }: AdmittedChat): Promise<boolean> {
  try {
    return (await within(markTimeoutMs, context.holdMarker.mark(chatId))) === true;
  } catch (err) {
    context.log.error({ err, chat_id: chatId }, 'a hold could not be marked as started');
    return false;
  }
}

/** The client left before the first byte, but the upstream had worked on its prompt. */
function settleLeft(context: ChatContext, chat: RunningChat, upstream: string, latencyMs: number): void {
  const progress = { written: '' };
  const end = { ending: 'client_left', upstream, progress, firstByteMs: latencyMs, latencyMs } as const;
  settleChat(context, chat, { ...end, reason: 'aborted' });
}

function settleWhole(
  context: ChatContext,
  chat: RunningChat,
  upstream: string,
  answer: UpstreamCompleted,
  isLeft: boolean,
): void {
  const { firstByteMs, latencyMs } = answer;
  const end = { upstream, progress: answer, firstByteMs, latencyMs };
  settleChat(
    context,
    chat,
    isLeft ? { ...end, ending: 'client_left', reason: 'aborted' } : { ...end, ending: 'completed' },
  );
}

/** Settles when the upstream is done, whether or not the client reads the stream to its end. */
function stream(
  context: ChatContext,
  chat: RunningChat,
  { upstream, attempt }: Begun,
  answer: UpstreamStreaming,
): ChatAnswer {
  const { chatId, limit } = chat;
  const totalMs = context.settings.upstreams.find(({ name }) => name === upstream)?.totalTimeoutMs ?? 0;
  // chunks may still wait for a client that does not read
  const overdue = setTimeout(() => answer.abort(), totalMs + graceMs);
  const settleAtEnd = async (): Promise<void> => {
    const ending = await answer.ending;
    clearTimeout(overdue);
    attempt.report(healthSign(ending));
    settleStream(context, chat, upstream, answer, ending);
  };
  return { kind: 'stream', chatId, chunks: passOn(chat, answer), ended: settleAtEnd(), limit };
}

const done = Buffer.from('data: [DONE]\n\n');

/** The upstream's events unchanged, without usage that was not requested, and with `[DONE]` only after a complete answer. */
async function* passOn(chat: RunningChat, answer: UpstreamStreaming): AsyncGenerator<Buffer, void> {
  let isRead = false;
  try {
    for await (const together of answer.chunks) {
      const wanted = together.filter(({ role }) => role !== 'usage' || chat.wantsUsage);
      if (wanted.length > 0) yield Buffer.concat(wanted.map(({ raw }) => raw));
    }
    isRead = true;
    const ending = await answer.ending;
    if (ending.kind === 'failed') yield errorEvent(ending);
    // every choice is complete, only the upstream's own `[DONE]` is missing
    else if (!ending.isTerminated) yield done;
  } finally {
    if (!isRead) answer.abort();
  }
}

function settleStream(
  context: ChatContext,
  chat: RunningChat,
  upstream: string,
  { firstByteMs }: UpstreamStreaming,
  ending: StreamEnding,
): void {
  const { latencyMs } = ending;
  const base = { upstream, progress: ending, firstByteMs, latencyMs };
  if (ending.kind === 'completed') return settleChat(context, chat, { ...base, ending: 'completed' });
  const isLeft = ending.cause === 'aborted' || ending.cause === 'slow_reader';
  settleChat(context, chat, { ...base, ending: isLeft ? 'client_left' : 'cut', reason: ending.cause });
}

/** A stream's status is already sent, so the error is an event; without `[DONE]` after it no client takes it for the end. */
function errorEvent({ cause }: Extract<StreamEnding, { kind: 'failed' }>): Buffer {
  const isLate = cause === 'stalled' || cause === 'total_timeout' || cause === 'slow_reader';
  const message =
    "The model's server did not end its answer. Its cost is that of the prompt and of what was delivered. " +
    'Send the request again for a whole answer.';
  const { body } = openAiError(isLate ? 'upstream_timeout' : 'upstream_error', { message });
  return Buffer.from(`data: ${JSON.stringify(body)}\n\n`);
}
