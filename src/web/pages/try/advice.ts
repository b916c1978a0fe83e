import type { OpenAiError } from '../../../base/errors/openai-error.ts';
import { html, type Html } from '../../../base/values/html.ts';

/** What to do next if an answer did not come, or not to its end. The first entry that fits counts, in the page's module too. */
interface Advice {
  readonly codes?: readonly string[];
  readonly statuses?: readonly number[];
  readonly text: Html;
}

const advice: readonly Advice[] = [
  {
    codes: ['session'],
    statuses: [401],
    text: html`Your session has ended.
      <a href="/sign-in" target="_blank" rel="noopener">Sign in in a new tab</a>, then come back and send it
      again: what you typed is kept on this page.`,
  },
  {
    codes: ['sign_in'],
    text: html`This model costs credit. <a href="/sign-in">Sign in</a> or <a href="/sign-up">sign up</a> to
      use it, or choose a free model.`,
  },
  {
    statuses: [402],
    text: html`See <a href="/credit">your credit</a>, choose a cheaper or a free model, or ask for less: the
      most that an answer can cost must be there before the model is asked.`,
  },
  {
    codes: ['day_used_up'],
    text: html`The next day begins at midnight UTC. Until then use a model with a price, for which
      <a href="/credit">your account</a> needs credit.`,
  },
  { statuses: [429], text: html`Then send it again.` },
  {
    statuses: [404],
    text: html`It may have been withdrawn. <a href="/try">Load this page again</a> for the models that there
      are, or choose another one.`,
  },
  {
    codes: ['context_length_exceeded'],
    statuses: [413],
    text: html`Begin a new conversation, shorten what you ask, or choose a model with a longer context.`,
  },
  {
    codes: ['cut'],
    text: html`The model’s server did not end its answer. You pay for the prompt and for what was delivered.
    Send it again, or choose another model.`,
  },
  {
    codes: ['stopped'],
    text: html`You stopped it. You pay for the prompt and for what was written until then.`,
  },
  {
    codes: ['stopped_early'],
    text: html`You stopped it before the answer began. If a model worked on it already, you pay for the
      prompt: <a href="/usage/requests">your requests</a> say so in a moment.`,
  },
  {
    codes: ['lost'],
    text: html`The connection was lost, so that this page does not know how it ended. If a model answered, you
      pay for the prompt and for what was written: see <a href="/usage/requests">your requests</a>, then send
      it again.`,
  },
  {
    statuses: [500, 502, 503, 504],
    text: html`Nothing was charged. Send it again in a moment, or choose another model.`,
  },
  { codes: ['other'], text: html`Nothing was charged. Change what you ask, and send it again.` },
];

/** For a refusal of the API. */
export function adviceFor({ status, retry, body }: OpenAiError, isSignedIn: boolean): Html | undefined {
  const code = adviceCode(status, retry, body.error.code, isSignedIn);
  const found = advice.find(
    ({ codes = [], statuses = [] }) => codes.includes(code) || statuses.includes(status),
  );
  return (found ?? advice.at(-1))?.text;
}

function adviceCode(status: number, retry: boolean, code: string, isSignedIn: boolean): string {
  if (status === 402 && !isSignedIn) return 'sign_in';
  return status === 429 && !retry ? 'day_used_up' : code;
}

/** All of it, for the page's module: it shows the one that fits. */
export function adviceList(): Html {
  return html`<template data-advice
    >${advice.map(
      ({ codes = [], statuses = [], text }) =>
        html`<span data-codes="${codes.join(' ')}" data-statuses="${statuses.join(' ')}">${text}</span>`,
    )}</template
  >`;
}
