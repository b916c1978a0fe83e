import { readChatRequest } from '../domain/chat/chat-request.ts';
import { openAiError } from '../domain/errors/openai-error.ts';
import type { StreamEnding, UpstreamCompleted, UpstreamStreaming } from '../peers/upstream/answer.ts';
import { healthSign } from '../peers/upstream/health.ts';
import { type AdmittedChat, admitChat } from './admit-chat.ts';
import { type ChatAnswer, type Refused, refuse } from './answer.ts';
import { authorizeSpend } from '../spend/authorize-spend.ts';
import { type Begun, callUpstream } from './call-upstream.ts';
import type { Caller } from './caller.ts';
import { mayAnswerBeforeLanding } from '../spend/exposure.ts';
import type { ChatContext } from './context.ts';
import { asked, type AskedChat, releaseChat, settleChat } from './settle-chat.ts';
import { earnSpend, releaseSpend } from '../spend/take-spend.ts';
import { within } from '../runtime/within.ts';

/** How long an answer waits for its hold to be marked: longer, and its client is told that the ledger is away. */
const markTimeoutMs = 5_000;
/** Why a signal is aborted where a client has gone by itself. */
export const clientLeft = 'the connection is closed';
/** For the reader of a stream whose upstream's time is over. */
const graceMs = 5_000;

/** A chat that was asked for: what is wrong with it, or that it may be made. Throws only where the ledger cannot be reached. */
export async function askForChat(
  context: ChatContext,
  caller: Caller,
  body: Buffer,
): Promise<AdmittedChat | Refused> {
  if (context.stopping()) return refuse(openAiError('overloaded'), { retryAfterSecs: 1 });
  const request = readChatRequest(body);
  return 'invalid' in request ? refuse(request.invalid) : admitChat(context, caller, request, body);
}

/**
 * Makes an admitted completion: asked of an upstream, passed on, paid for. An abort of `signal` closes the upstream at once,
 * and what it was given to do by then is paid, by a spend with all of it. Never throws, and waits for the ledger only
 * within limits: from here on a client is told how it went, not that the ledger is away.
 */
export async function makeChat(
  context: ChatContext,
  chat: AdmittedChat,
  signal: AbortSignal,
): Promise<ChatAnswer> {
  const unpaid = await landSpend(context, chat, signal);
  if (unpaid) return unpaid;
  let started: Promise<boolean> = Promise.resolve(true);
  const onBegin = (): void => {
    if (!chat.spend && chat.holdMicros > 0n) started = startHold(context, chat);
  };
  const startedAtMs = performance.now();
  const begun = await callUpstream(context, chat, signal, onBegin);
  const { chatId, limit } = chat;
  if (begun.kind === 'not_begun') {
    const isLeft = begun.reason === 'aborted';
    if (begun.upstream !== undefined && isLeft && (await paysForLeaving(context, chat, signal)))
      settleLeft(context, asked(chat), begun.upstream, performance.now() - startedAtMs);
    else {
      if (chat.spend) await releaseSpend(context, chat.spend, begun.reason);
      releaseChat(context, chat, begun.reason, begun.upstream);
    }
    return { ...begun.refused, limit };
  }
  const { answer } = begun;
  // nothing is passed on that could be lost without being paid
  if (!(await started)) {
    if (answer.kind === 'streaming') answer.abort();
    releaseChat(context, chat, 'hold_not_marked', begun.upstream);
    return refuse(openAiError('ledger_unavailable'), { limit, retryAfterSecs: 2 });
  }
  if (chat.spend && !(await earnSpend(context, chat.spend))) {
    // another process has given its nonce up: this one was not seen for a while
    if (answer.kind === 'streaming') answer.abort();
    releaseChat(context, chat, 'spend_taken_away', begun.upstream);
    return refuse(openAiError('overloaded'), { limit, retryAfterSecs: 2 });
  }
  if (answer.kind === 'streaming') return stream(context, asked(chat), begun, answer);
  settleWhole(context, asked(chat), begun.upstream, answer);
  return { kind: 'whole', chatId, body: answer.body, limit };
}

/** Ends a chat that was admitted when nobody waited for it any more: nothing was asked, nothing is charged. */
export function dropChat(context: ChatContext, chat: AdmittedChat): void {
  releaseChat(context, chat, 'not_waited_for', undefined);
  if (chat.spend) void releaseSpend(context, chat.spend, 'not_waited_for');
}

/** What pays for a completion on a chain lands there before anything is done for it, but for an exposure that is allowed. */
async function landSpend(
  context: ChatContext,
  chat: AdmittedChat,
  signal: AbortSignal,
): Promise<Refused | undefined> {
  const { spending } = context;
  if (!chat.spend || !spending || (await mayAnswerBeforeLanding(context, spending, chat.spend)))
    return undefined;
  const refused = await authorizeSpend(context, spending, chat.spend, signal);
  if (!refused) return undefined;
  const { code } = refused.error.body.error;
  releaseChat(context, chat, code, undefined);
  await releaseSpend(context, chat.spend, code);
  return { ...refused, limit: chat.limit };
}

/**
 * Who leaves while an upstream works for them pays for that; by a spend only where they left by themselves, since it pays all
 * of its amount. Its nonce would buy that work over and over, did it come free.
 */
async function paysForLeaving(
  context: ChatContext,
  chat: AdmittedChat,
  signal: AbortSignal,
): Promise<boolean> {
  if (!chat.spend) return true;
  return signal.reason === clientLeft && earnSpend(context, chat.spend);
}

async function startHold(context: ChatContext, { chatId }: AdmittedChat): Promise<boolean> {
  try {
    return (await within(markTimeoutMs, context.holdMarker.mark(chatId))) === true;
  } catch (err) {
    context.log.error({ err, chat_id: chatId }, 'a hold could not be marked as begun');
    return false;
  }
}

/** A client that left before anything came back: its prompt was worked on all the same. */
function settleLeft(context: ChatContext, chat: AskedChat, upstream: string, latencyMs: number): void {
  const progress = { written: '' };
  const end = { ending: 'client_left', upstream, progress, firstByteMs: latencyMs, latencyMs } as const;
  settleChat(context, chat, { ...end, reason: 'aborted' });
}

function settleWhole(
  context: ChatContext,
  chat: AskedChat,
  upstream: string,
  answer: UpstreamCompleted,
): void {
  const { firstByteMs, latencyMs } = answer;
  settleChat(context, chat, { ending: 'completed', upstream, progress: answer, firstByteMs, latencyMs });
}

/** Settled when its upstream's part is over, whether or not anybody reads it to its end. */
function stream(
  context: ChatContext,
  chat: AskedChat,
  { upstream, attempt }: Begun,
  answer: UpstreamStreaming,
): ChatAnswer {
  const { chatId, limit } = chat;
  const totalMs = context.settings.upstreams.find(({ name }) => name === upstream)?.totalTimeoutMs ?? 0;
  // what has come may still wait for a reader who never reads it
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

/** The upstream's events as they are, usage left out where nobody asked for it, and an end that tells the truth. */
async function* passOn(chat: AskedChat, answer: UpstreamStreaming): AsyncGenerator<Buffer, void> {
  let isRead = false;
  try {
    for await (const together of answer.chunks) {
      const wanted = together.filter(({ role }) => role !== 'usage' || chat.wantsUsage);
      if (wanted.length > 0) yield Buffer.concat(wanted.map(({ raw }) => raw));
    }
    isRead = true;
    const ending = await answer.ending;
    if (ending.kind === 'failed') yield errorEvent(ending);
    // every choice is complete, only the word for it is missing
    else if (!ending.isTerminated) yield done;
  } finally {
    if (!isRead) answer.abort();
  }
}

function settleStream(
  context: ChatContext,
  chat: AskedChat,
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

/** The client of a stream cannot be told by a status any more; without `[DONE]` behind it no client takes it for an end. */
function errorEvent({ cause }: Extract<StreamEnding, { kind: 'failed' }>): Buffer {
  const isLate = cause === 'stalled' || cause === 'total_timeout' || cause === 'slow_reader';
  const { body } = openAiError(isLate ? 'upstream_timeout' : 'upstream_error');
  return Buffer.from(`data: ${JSON.stringify(body)}\n\n`);
}
