// Topping up from the page of credit.

import { twoDigits } from './amounts.js';
import { bindPayForm } from './pay-form.js';
import { stop } from './wallet.js';

const place = document.querySelector('[data-top-up] .pay');

/** The order names the account of the session: the gateway makes it, and the wallet signs it with the payment. */
async function prepare(_path, form) {
  let answer;
  try {
    const body = new URLSearchParams({ form: form.elements.form.value });
    answer = await fetch('/credit/top-up/order', { method: 'POST', body, redirect: 'manual' });
  } catch {
    throw stop('The gateway cannot be reached.', 'Check your connection and try again.');
  }
  if (answer.type === 'opaqueredirect')
    throw stop(
      'Your session has ended, or this page is too old.',
      'Load this page again, and sign in if it asks you to.',
    );
  if (!answer.ok) throw stop(`The gateway answered with status ${answer.status}.`, 'Try again later.');
  return answer.json();
}

function completed({ digest, result }) {
  if (!result) return 'The credit was added. Load this page again to see it.';
  const { credited, balance, currency } = JSON.parse(result.text);
  const shown = document.querySelector('[data-balance] .amount');
  shown.value = balance;
  shown.title = `${balance} ${currency}`;
  shown.firstChild.data = `${twoDigits(balance)} `;
  // the history is that of this page's load
  document.querySelector('.empty')?.setAttribute('hidden', '');
  const words = document.createElement('span');
  const link = Object.assign(document.createElement('a'), {
    href: `/credit/receipts/${digest}`,
    textContent: 'See the receipt',
  });
  words.append(
    `${twoDigits(credited)} ${currency} were added: you can spend ${twoDigits(balance)} ${currency} now. `,
    link,
  );
  return words;
}

void bindPayForm(place, { prepare, completed });
