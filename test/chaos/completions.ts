import { z } from 'zod';
import { spendHeader } from '../support/spend.ts';
import { chatModel } from './chat-config.ts';
import { type ClientParts, timeLimit } from './client.ts';
import type { Random } from './random.ts';
import type { Completion, CompletionAttempt, Means, Records } from './records.ts';
import { pause } from './until.ts';

export interface CompletionParts extends ClientParts {
  readonly records: Pick<Records, 'completions'>;
}

export interface CompletionOptions {
  /** The client closes its connection after this time, and does not return. */
  readonly leavesAfterMs?: number | undefined;
  readonly isStream: boolean;
  /** After how many attempts without any answer it gives up; left out, it asks until the run is over. */
  readonly maxSilent?: number;
}

/** Longer than any answer takes while nothing is down. */
const longestMs = 12_000;
const errorShape = z.object({ error: z.object({ code: z.string().nullish() }) });
const answerShape = z.object({
  usage: z.object({ prompt_tokens: z.int(), completion_tokens: z.int() }),
});

/** Asks for one completion; repeats the same request after broken connections, 408, 429, 5xx, and while it is in progress. */
export async function complete(
  { urls, deadline, records }: CompletionParts,
  random: Random,
  of: Pick<Completion, 'scenario' | 'means'>,
  { leavesAfterMs, isStream, maxSilent = Infinity }: CompletionOptions,
): Promise<Completion> {
  const prompt = `${random.hex32()} words:${random.between(3, 20)}`;
  const completion: Completion = { ...of, prompt, attempts: [], end: 'unanswered' };
  records.completions.push(completion);
  const body = JSON.stringify({
    model: chatModel,
    messages: [{ role: 'user', content: prompt }],
    max_tokens: 100,
    stream: isStream,
  });
  const headers = headersOf(of.means);
  const silent = () => completion.attempts.filter(({ status }) => status === undefined).length;
  while (!deadline.aborted && silent() < maxSilent) {
    const signal = timeLimit(leavesAfterMs ?? longestMs, deadline);
    const attempt = await askOnce(random.pick(urls), { body, headers, isStream }, signal);
    completion.attempts.push(attempt);
    if (leavesAfterMs !== undefined) completion.end = 'left';
    else if (attempt.status === 200) completion.end = 'answered';
    else if (isDefinite(attempt)) completion.end = 'refused';
    if (completion.end !== 'unanswered') return completion;
    await pause(random.between(80, 400), deadline);
  }
  if (silent() >= maxSilent) completion.end = 'left';
  return completion;
}

function isDefinite({ status, code }: CompletionAttempt): boolean {
  const isAgain = status === 408 || status === 429 || code === 'spend_in_progress';
  return status !== undefined && status >= 400 && status < 500 && !isAgain;
}

function headersOf(means: Means): Record<string, string> {
  if (means.kind === 'credit') return { authorization: `Bearer ${means.account.key}` };
  const { spend, secret } = means;
  return {
    'x-payment-signature': spendHeader(spend.auth),
    ...(secret === undefined ? {} : { 'x-payment-secret': secret }),
  };
}

interface Sent {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly isStream: boolean;
}

async function askOnce(
  gateway: string,
  { body, headers, isStream }: Sent,
  signal: AbortSignal,
): Promise<CompletionAttempt> {
  const sentAt = Date.now();
  const broken = (): 'broken' | 'left' => (signal.aborted ? 'left' : 'broken');
  let response: Response;
  try {
    response = await fetch(`${gateway}/v1/chat/completions`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', ...headers },
      signal,
    });
  } catch {
    return { gateway, sentAt, endedAt: Date.now(), status: undefined, end: broken() };
  }
  const { status } = response;
  const chatId = status === 200 ? (response.headers.get('x-request-id') ?? undefined) : undefined;
  const seen = { gateway, sentAt, status, chatId };
  try {
    const text = await response.text();
    const endedAt = Date.now();
    if (status !== 200) {
      const { data } = errorShape.safeParse(JSON.parse(text));
      return { ...seen, endedAt, code: data?.error.code ?? undefined, end: 'whole' };
    }
    if (isStream) return { ...seen, endedAt, end: text.includes('data: [DONE]') ? 'whole' : 'broken' };
    return { ...seen, endedAt, usage: answerShape.parse(JSON.parse(text)).usage, end: 'whole' };
  } catch {
    return { ...seen, endedAt: Date.now(), end: broken() };
  }
}
