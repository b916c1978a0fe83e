import type { OpenAiError } from '../../../base/errors/openai-error.ts';
import { html, type Html } from '../../../base/values/html.ts';

/**
 * What to do next if an answer did not come, or not to its end. The first entry that fits counts, in the page's module too. It is shown
 * after what the API says is wrong, or, if it says that as well, alone.
 */
interface Advice {
  readonly codes?: readonly string[];
  readonly statuses?: readonly number[];
  readonly isWhole?: true;
  readonly text: Html;
}

const other: Advice = {
  codes: ['other'],
  text: html`Nothing was charged. Change what you ask, and send it again.`,
};

const advice: readonly Advice[] = [
  {
    codes: ['session'],
    statuses: [401],
    isWhole: true,
    text: html`Your session has ended. Nothing was charged.
      <a href="/sign-in" target="_blank" rel="noopener">Sign in in a new tab</a>, then come back and send it
      again: what you typed is kept on this page.`,
  },
  {
    codes: ['sign_in'],
    isWhole: true,
    text: html`This model costs credit, and you are not signed in. Nothing was charged.
      <a href="/sign-in">Sign in</a> or <a href="/sign-up">sign up</a> to use it, or choose a free model.`,
  },
  {
    statuses: [402],
    text: html`Nothing was charged. <a href="/credit">Add credit</a>, choose a cheaper or a free model, or
      shorten what you ask: the most that an answer can cost must be there before the model is asked.`,
  },
  {
    codes: ['day_used_up'],
    isWhole: true,
    text: html`The free requests of this day are used up. Nothing was charged. The next day begins at midnight
      UTC. Until then use a model with a price, for which <a href="/credit">your account</a> needs credit.`,
  },
  { statuses: [429], text: html`Nothing was charged. Then send it again.` },
  {
    statuses: [404],
    text: html`Nothing was charged. <a href="/try">Load this page again</a> for the models that there are.`,
  },
  {
    codes: ['context_length_exceeded'],
    statuses: [413],
    text: html`Nothing was charged. Begin a new conversation, shorten what you ask, or choose a model with a
    longer context.`,
  },
  {
    codes: ['cut'],
    isWhole: true,
    text: html`The model’s server did not end its answer. If the model has a price, you pay for the prompt and
    for what was delivered. Send it again, or choose another model.`,
  },
  {
    codes: ['stopped'],
    isWhole: true,
    text: html`You stopped it. You pay for the prompt and for what was written until then.`,
  },
  {
    codes: ['stopped_early'],
    isWhole: true,
    text: html`You stopped it before the answer began. If a model worked on it already, you pay for the
      prompt: <a href="/usage/requests">your requests</a> say so in a moment.`,
  },
  {
    codes: ['lost'],
    isWhole: true,
    text: html`The connection was lost, so that this page does not know how it ended. If a model answered, you
      pay for the prompt and for what was written: see <a href="/usage/requests">your requests</a>, then send
      it again.`,
  },
  {
    statuses: [500, 502, 503, 504],
    text: html`Nothing was charged. Send it again in a moment, or choose another model.`,
  },
  other,
];

/** What the page says of a refusal of the API: what is wrong, whether it was charged, what to do next. */
export function refusedText(
  { status, retry, body }: OpenAiError,
  retryAfterSecs: number | undefined,
  isSignedIn: boolean,
): Html {
  const { message } = body.error;
  const code = adviceCode(status, retry, body.error.code, isSignedIn);
  const { text, isWhole } =
    advice.find(({ codes = [], statuses = [] }) => codes.includes(code) || statuses.includes(status)) ??
    other;
  const wait = retryAfterSecs !== undefined && retry && html`Wait ${retryAfterSecs} seconds. `;
  // what follows in it is for programs
  const [what] = message.split(' Nothing was charged.', 1);
  return isWhole ? text : html`${what} ${wait}${text}`;
}

function adviceCode(status: number, retry: boolean, code: string, isSignedIn: boolean): string {
  if (status === 402 && !isSignedIn) return 'sign_in';
  return status === 429 && !retry ? 'day_used_up' : code;
}

/** All of it, for the page's module: it shows the one that fits. */
export function adviceList(): Html {
  return html`<template data-advice
    >${advice.map(
      ({ codes = [], statuses = [], isWhole, text }) =>
        html`<span
          data-codes="${codes.join(' ')}"
          data-statuses="${statuses.join(' ')}"
          ${isWhole && html`data-whole`}
          >${text}</span
        >`,
    )}</template
  >`;
}
