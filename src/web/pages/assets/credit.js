// Topping up from the page of credit.

import { amountText, decimalText } from './amounts.js';
import { bindPayForm } from './pay-form.js';
import { stop } from './wallet.js';

const place = document.querySelector('[data-top-up] .pay');

/**
 * The order names the account of the session, and how many top-ups it buys: the gateway makes it, and the wallet signs it with the
 * payment, whose amount is compared with what this page has shown.
 */
async function prepare(_path, form, terms) {
  const units = form.elements.units.value;
  let answer;
  try {
    const body = new URLSearchParams({ form: form.elements.form.value, units });
    answer = await fetch('/credit/top-up/order', { method: 'POST', body, redirect: 'manual' });
  } catch {
    throw stop('The gateway cannot be reached.', 'Check your connection and try again.');
  }
  if (answer.type === 'opaqueredirect')
    throw stop(
      'Your session has ended, or this page is too old.',
      'Load this page again, and sign in if it asks you to.',
    );
  if (answer.status === 422) throw stop((await answer.json()).error);
  if (!answer.ok) throw stop(`The gateway answered with status ${answer.status}.`, 'Try again later.');
  return {
    ...(await answer.json()),
    terms: { ...terms, amount: String(BigInt(terms.amount) * BigInt(units)) },
  };
}

const creditDecimals = 6;

/** Shows what the number of top-ups gives, and what it costs. */
function showTotal() {
  const form = place.querySelector('form');
  const total = place.querySelector('[data-total]');
  const { valueAsNumber: units, validity } = form.elements.units;
  const { credit, amount, decimals, symbol } = form.querySelector('[data-network]:checked').dataset;
  const times = (text) => BigInt(text) * BigInt(units);
  total.value = validity.valid
    ? `${amountText(decimalText(times(credit), creditDecimals))} ${total.dataset.currency} for ${decimalText(times(amount), Number(decimals))} ${symbol}`
    : '';
}

const link = (href, textContent) => Object.assign(document.createElement('a'), { href, textContent });

async function completed({ digest, result }) {
  const isShown = await showNewState();
  if (!result) return `The credit was added.${isShown ? '' : ' Load this page again to see it.'}`;
  const { credited, balance, currency } = JSON.parse(result.text);
  const words = document.createElement('span');
  words.append(
    `${amountText(credited)} ${currency} were added: you can spend ${amountText(balance)} ${currency} now. `,
    link(`/credit/receipts/${digest}`, 'See the receipt'),
    ' · ',
    link('/credit', 'Top up again'),
  );
  return words;
}

/** Puts the figures and the history of the page as it is now in the place of those that were loaded. */
async function showNewState() {
  const now = await pageNow();
  if (!now) return false;
  for (const part of ['[data-figures]', '[data-history]']) {
    const shown = document.querySelector(part);
    const next = now.querySelector(part);
    if (!shown || !next) return false;
    shown.replaceWith(document.adoptNode(next));
  }
  return true;
}

/** This page as the gateway shows it now; undefined if it does not. Trusted Types let no other interface read markup. */
function pageNow() {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.responseType = 'document';
    request.open('GET', '/credit');
    request.addEventListener('load', () => resolve(request.status === 200 ? request.response : undefined));
    request.addEventListener('error', () => resolve(undefined));
    request.send();
  });
}

place.querySelector('form').addEventListener('input', showTotal);
showTotal();
/** The payment is what matters now: it comes before the figures, and nothing says that there is no credit. */
function begun() {
  document.querySelector('[data-figures]').before(place.closest('section'));
  document.querySelector('[data-history] > .empty')?.remove();
}

void bindPayForm(place, { prepare, completed, begun });
