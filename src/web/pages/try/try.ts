import { z } from 'zod';
import type { Refused } from '../../../chat/use-cases/answer.ts';
import type { Caller } from '../../../chat/use-cases/caller.ts';
import { requestChat } from '../../../chat/use-cases/complete-chat.ts';
import { type Generation, readGeneration } from '../../../chat/use-cases/generation.ts';
import { openAiError } from '../../../base/errors/openai-error.ts';
import { jsonValue } from '../../../base/values/bounded-json.ts';
import { html } from '../../../base/values/html.ts';
import { clientOf } from '../../../base/values/client-address.ts';
import { addressOf } from '../../../base/http/request-values.ts';
import { poll } from '../../../base/runtime/poll.ts';
import { noticeOf } from '../document.ts';
import { notices } from '../notices.ts';
import type { Pages } from '../serve.ts';
import type { ChatVisit, Sent, View } from '../visit.ts';
import { refusedText } from './advice.ts';
import { factsOf, maxFormBytes, tryView, turnView, type Typed, typedIn } from './view.ts';

/** The cost of an answer is recorded within milliseconds after it. */
const costTimeoutMs = 2_000;
const costPauses = { firstMs: 10, longestMs: 250 };

/** A page to chat with a model; without JavaScript one message and its answer. */
export function tryPages(pages: Pages<ChatVisit>): void {
  pages.show('/try', (visit) =>
    tryView(visit, { model: visit.query.get('model') ?? '', system: '', prompt: '' }),
  );
  pages.take('/try', { maxBytes: maxFormBytes, showAgain }, answerForm);
}

function showAgain(visit: ChatVisit, fields: URLSearchParams): Promise<View> {
  return tryView(visit, typedIn(fields), { status: 409 });
}

async function answerForm(visit: ChatVisit, { fields, form }: Sent): Promise<View> {
  const { completions, chat } = visit.site;
  const context = chat();
  const typed = typedIn(fields);
  const nowMs = Date.now() + context.lane.state.clockOffsetMs;
  // the ledger remembers for a UTC day which forms have made their completion
  if (dayOf(form.madeAtMs) !== dayOf(nowMs))
    return tryView(visit, typed, { status: 409, above: noticeOf(notices.form_too_old) });
  if (typed.prompt.trim() === '')
    return tryView(visit, typed, { status: 422, above: noticeOf({ tone: 'bad', text: 'Write a message.' }) });
  if (context.lane.state.halt)
    return refusedView(visit, typed, {
      kind: 'refused',
      error: openAiError('ledger_inconsistent'),
      retryAfterSecs: 60,
    });
  const waitSecs = completions.charge(visit.request);
  if (waitSecs > 0)
    return refusedView(visit, typed, {
      kind: 'refused',
      error: openAiError('rate_limit_exceeded'),
      retryAfterSecs: waitSecs,
    });
  const body = Buffer.from(JSON.stringify(requestOf(typed)));
  const admission = requestChat(context, callerOf(visit, form.id), body);
  const { request, onClose } = visit;
  const answer = await completions.make({
    context,
    request,
    bodyBytes: body.length,
    admission,
    onClose,
  }).answer;
  switch (answer.kind) {
    case 'refused':
      return refusedView(visit, typed, answer);
    case 'stream':
      throw new Error('a completion that was to be whole is a stream');
    case 'whole': {
      const generation = await recordOf(visit, answer.chatId);
      const facts = html`${factsOf(generation, context.settings.currency)}${isCut(answer.body) && ' · It ended at its longest length.'}`;
      const turn = { asked: typed.prompt, model: typed.model, answer: textOf(answer.body), facts };
      return tryView(visit, { ...typed, prompt: '' }, { above: turnView(turn) });
    }
  }
}

/** One message: a conversation needs the page's module. */
function requestOf({ model, system, prompt }: Typed): object {
  const first = system.trim() === '' ? [] : [{ role: 'system', content: system }];
  return { model, messages: [...first, { role: 'user', content: prompt }] };
}

function callerOf({ site, request, visitor }: ChatVisit, formId: string): Caller {
  const client = clientOf(addressOf(request), site.chat().settings.ipv6Prefix);
  if (!visitor) return { kind: 'anonymous', client, formId };
  return { kind: 'session', userId: visitor.userId, accountId: visitor.accountId, client, formId };
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

async function recordOf({ site, visitor }: ChatVisit, chatId: string): Promise<Generation | undefined> {
  if (!visitor) return undefined;
  return poll(() => readGeneration(site.chat(), visitor, chatId), {
    until: (generation) => generation?.status !== 'running',
    timeoutMs: costTimeoutMs,
    pauses: costPauses,
  });
}

const answerBody = z.object({
  choices: z.array(
    z.object({
      message: z.object({ content: z.string().nullish() }),
      finish_reason: z.string().nullish(),
    }),
  ),
});

function choiceIn(body: Buffer): z.infer<typeof answerBody>['choices'][number] | undefined {
  return answerBody.safeParse(jsonValue(body)).data?.choices[0];
}

function textOf(body: Buffer): string {
  return choiceIn(body)?.message.content ?? 'The model gave no text.';
}

function isCut(body: Buffer): boolean {
  return choiceIn(body)?.finish_reason === 'length';
}

/** What was typed is in the form again. */
function refusedView(
  visit: ChatVisit,
  typed: Typed,
  { error, retryAfterSecs, isRepeatedForm }: Refused,
): Promise<View> {
  if (isRepeatedForm) return tryView(visit, typed, { status: 409, above: repeated });
  const above = html`<p class="notice bad" role="alert">
    ${refusedText(error, retryAfterSecs, visit.visitor !== undefined)}
  </p>`;
  return tryView(visit, typed, {
    status: error.status,
    above,
    ...(retryAfterSecs !== undefined && { retryAfterSecs }),
  });
}

const repeated = html`<p class="notice warn" role="alert">
  This form was sent before, so it was not sent to the model again, and nothing more was charged. Its answer
  is not kept; <a href="/usage/requests">your requests</a> say what it cost. To ask the same again, send it
  now.
</p>`;
