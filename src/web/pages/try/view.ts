import type { ModelConfig } from '../../../base/config/config.ts';
import type { Generation } from '../../../chat/use-cases/generation.ts';
import { parseCredit, priceText } from '../../../base/values/price.ts';
import { html, type Html, type Shown } from '../../../base/values/html.ts';
import { findAccount } from '../../../accounts/store/credit.ts';
import { pathWith } from '../own-path.ts';
import { amount, count, empty, form, personName } from '../elements.ts';
import type { ChatVisit, View } from '../visit.ts';
import { adviceList } from './advice.ts';

/** So that a form without JavaScript is at most `maxFormBytes` long: three bytes a character, each as three characters. */
const maxPromptChars = 10_000;
const maxSystemChars = 4_000;
export const maxFormBytes = 131_072;

/** What a person typed. */
export interface Typed {
  readonly model: string;
  readonly system: string;
  readonly prompt: string;
}

export function typedIn(fields: URLSearchParams): Typed {
  const text = (name: string): string => (fields.get(name) ?? '').replaceAll('\r\n', '\n');
  return { model: text('model'), system: text('system'), prompt: text('prompt') };
}

/** What is above the form: an answer, or why there is none. */
export interface Shows {
  readonly status?: number;
  readonly above?: Html;
  readonly retryAfterSecs?: number;
}

export async function tryView(visit: ChatVisit, typed: Typed, shows: Shows = {}): Promise<View> {
  const { site, visitor } = visit;
  const { models, settings, db } = site.chat();
  const all = [...models.values()];
  const usable = all.filter(({ price }) => visitor !== undefined || price === undefined);
  const account = visitor && (await findAccount(db, { accountId: visitor.accountId }));
  const { currency } = settings;
  const { status = 200, above, retryAfterSecs } = shows;
  const balance =
    visitor &&
    html`<p class="balance" data-balance>
      You can spend ${amount(BigInt(account?.balanceMicros ?? 0), currency)}
    </p>`;
  const chosen = all.some(({ name }) => name === typed.model) ? typed.model : (usable[0]?.name ?? '');
  const body = html`<div class="head">
      <h1>Chat with a model</h1>
      ${balance}
    </div>
    ${above}
    <section
      aria-label="Conversation"
      data-turns
      data-currency="${currency}"
      data-user="${visitor ? 'yes' : ''}"
    ></section>
    ${
      usable.length === 0
        ? empty(
            'No model is free here',
            'With an account you can try each model, for what it costs by the token.',
            html`<a class="button" href="/sign-up">Sign up</a>`,
          )
        : tryForm(visit, all, chosen, typed)
    }
    <template data-turn>${turnView({ asked: '', model: '', answer: '' })}</template>
    ${adviceList()}`;
  return {
    kind: 'view',
    title: 'Chat with a model',
    section: 'try',
    body,
    status,
    scripts: ['try.js'],
    ...(retryAfterSecs !== undefined && { retryAfterSecs }),
  };
}

function tryForm(visit: ChatVisit, models: readonly ModelConfig[], chosen: string, typed: Typed): Html {
  const isUser = visit.visitor !== undefined;
  const { currency, anonymousPerDay } = visit.site.chat().settings;
  const fields = html`<div class="field">
      <label for="prompt">Your message</label>
      <textarea id="prompt" name="prompt" rows="4" maxlength="${maxPromptChars}" required dir="auto">
${typed.prompt}</textarea>
    </div>
    <p class="actions">
      <button data-send>Send</button><button type="button" class="danger" data-stop hidden>Stop</button
      ><button type="button" class="plain" data-new hidden>New conversation</button
      ><span class="hint" data-keys hidden>Ctrl + Enter sends it.</span>
    </p>
    <div class="field">
      <label for="model">Model</label>
      <select id="model" name="model">
        ${models.map((model) => option(model, currency, { isChosen: model.name === chosen, isOff: !isUser && model.price !== undefined }))}
      </select>
      <p class="hint">
        ${
          isUser
            ? html`Prices are for a million tokens, in and out. Before an answer the most that it can cost is
              held from your credit; what is left over returns.`
            : html`Without an account you can ask the free models ${count(anonymousPerDay)} times a day.
                <a href="/sign-in">Sign in</a> to use the others.`
        }
      </p>
    </div>
    <details ${typed.system !== '' && html`open`}>
      <summary>System prompt</summary>
      <div class="field">
        <label class="unseen" for="system">Instructions for the model</label>
        <textarea id="system" name="system" rows="3" maxlength="${maxSystemChars}" dir="auto">
${typed.system}</textarea>
      </div>
    </details>
    <p class="hint" data-total hidden></p>
    <p class="unseen" role="status" data-status></p>
    <p class="hint">
      The gateway keeps neither what you ask nor what is answered: the conversation is only on this page.
    </p>`;
  return html`<div class="sheet" data-try>${form(visit, '/try', fields)}</div>`;
}

function option(
  { name, price }: ModelConfig,
  currency: string,
  { isChosen, isOff }: { readonly isChosen: boolean; readonly isOff: boolean },
): Html {
  const { inputNanosPerMillion: input = 0n, outputNanosPerMillion: output = 0n } = price ?? {};
  const cost = price ? `${priceText(input)} in, ${priceText(output)} out ${currency}` : 'free';
  return html`<option
    value="${name}"
    data-input="${input}"
    data-output="${output}"
    ${isChosen && html`selected`}
    ${isOff && html`disabled`}
  >
    ${name} (${cost})
  </option>`;
}

/** A message and its answer. Both are foreign text: nothing in them is markup, and each has its own direction. */
export function turnView(turn: {
  readonly asked: string;
  readonly model: string;
  readonly answer: string;
  readonly facts?: Shown;
}): Html {
  return html`<article class="turn sheet">
    <h2 class="label">You</h2>
    <bdi class="said" dir="auto" data-asked>${turn.asked}</bdi>
    <h2 class="label" data-model>${personName(turn.model)}</h2>
    <bdi class="said" dir="auto" data-answer>${turn.answer}</bdi>
    <p class="hint" data-facts>${turn.facts}</p>
  </article>`;
}

/** What an answer cost, as the page's module says it as well. */
export function factsOf(generation: Generation | undefined, currency: string): Shown {
  if (!generation) return 'Free of charge.';
  const { id, status, cost, held, prompt_tokens: input, completion_tokens: output } = generation;
  const credit = (text: string): Html => amount(parseCredit(text) ?? 0n, currency);
  const link = html`<a href="${pathWith('/usage/generation', { id })}">Details</a>`;
  if (status === 'running' || cost === null) return html`Its cost is not recorded yet. ${link}`;
  return html`Cost ${credit(cost)}${held !== null && html`, of ${credit(held)} held`} · ${count(input ?? 0)}
  tokens in, ${count(output ?? 0)} out · ${link}`;
}
