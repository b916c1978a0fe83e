// The parts of a page that pays: the choice of a wallet and of a token, the steps of the payment, and how it ended.

import { isKept, pay, resume } from './payment.js';
import { findWallets, Stop } from './wallet.js';

/**
 * Makes a form pay. Where a payment of its purpose is kept, it continues immediately.
 * @param place the element of `paymentForm()` in src/web/pages/payment.ts
 * @param prepare gets the path of the chosen job, the form, and the chosen terms; returns `{body, contentType, nonce?, path?, terms?}`;
 *   throws `Stop` where that cannot be said
 * @param completed receives the delivery, `{digest, receipt, result}`; returns a further sentence for the page, if any
 * @param begun called when the steps are shown
 */
export async function bindPayForm(place, { prepare, completed, begun }) {
  const form = place.querySelector('form');
  const { purpose } = place.dataset;
  const networks = JSON.parse(place.dataset.networks);
  const wallets = await findWallets();
  const steps = stepsOf(place);
  let isBusy = false;

  const run = async (start) => {
    if (isBusy) return;
    isBusy = true;
    // what is chosen in it is not what is paid, after the page was loaded again
    form.hidden = true;
    begun?.();
    steps.begin();
    let isPaid = false;
    try {
      const end = await start();
      isPaid = paid.includes(end?.kind);
      if (end) steps.end(end, isPaid ? await completed(end) : undefined);
    } catch (error) {
      const text =
        error instanceof Stop
          ? error.message
          : `This page failed: ${error?.message ?? error}. ${unknownText(purpose)}`;
      steps.end({ kind: 'stopped', text });
    } finally {
      isBusy = false;
      form.hidden = isPaid || wallets.length === 0;
    }
  };

  place.querySelector('[data-without-wallet]').hidden = wallets.length > 0;
  form.hidden = wallets.length === 0;
  offerWallets(form, wallets);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    delete form.dataset.sent;
    const { provider } = wallets[Number(new FormData(form).get('wallet') ?? 0)];
    void run(async () => {
      const { path, ...terms } = { ...form.querySelector('[data-network]:checked').dataset };
      const purchase = { purpose, networks, path, terms: { ...terms, decimals: Number(terms.decimals) } };
      // a kept payment continues
      const prepared = isKept(purpose) ? {} : await prepare(path, form, purchase.terms);
      return pay({ ...purchase, ...prepared }, provider, steps.show);
    });
  });
  // another tab may have it already: then this one says so
  if (isKept(purpose)) await run(() => resume(purpose, steps.show));
}

function unknownText(purpose) {
  return isKept(purpose)
    ? 'A payment is signed and kept in this browser: load this page again, and it continues.'
    : 'Nothing was charged. Load this page again.';
}

/** A choice, if the browser has several. */
export function offerWallets(form, wallets) {
  const choice = form.querySelector('[data-wallets]');
  if (wallets.length < 2) return;
  choice.hidden = false;
  for (const [index, { name }] of wallets.entries()) {
    const input = Object.assign(document.createElement('input'), {
      type: 'radio',
      name: 'wallet',
      value: String(index),
      checked: index === 0,
    });
    const label = document.createElement('label');
    label.append(input, ` ${name}`);
    choice.querySelector('.choices').append(label);
  }
}

/** Ends that the caller gets. */
const paid = ['completed', 'accepted'];
const tones = {
  completed: 'good',
  accepted: 'good',
  ended: 'bad',
  stopped: 'warn',
  busy: 'warn',
  waiting: 'warn',
};
const marks = { active: 'under way', waiting: 'waiting', done: 'done', failed: 'failed' };

/** An address or a transaction by its ends; one within a sentence is to be compared, so it stays whole. */
function shortened(text = '') {
  return text.replace(/^(0x[0-9a-f]{6})[0-9a-f]{28,}([0-9a-f]{6})$/i, '$1…$2');
}

function mark(item, state, text) {
  item.dataset.state = state;
  item.querySelector('[data-mark]').textContent = marks[state] ?? '';
  item.querySelector('[data-detail]').textContent = shortened(text);
}

export function stepsOf(place) {
  const list = place.querySelector('[data-steps]');
  const outcome = place.querySelector('[data-outcome]');
  const say = ({ kind, text = '' }, more) => {
    outcome.hidden = false;
    outcome.className = `notice ${tones[kind]}`;
    outcome.replaceChildren(more ?? text);
  };
  return {
    begin() {
      list.hidden = false;
      outcome.hidden = true;
      for (const item of list.children) mark(item, 'open', '');
      list.scrollIntoView({ block: 'center' });
    },
    show(step, state, text) {
      const item = list.querySelector(`[data-step="${step}"]`);
      // the steps that a continued payment has finished
      for (let before = item.previousElementSibling; before; before = before.previousElementSibling)
        if (before.dataset.state !== 'done') mark(before, 'done', '');
      // money whose outcome is unknown: said where outcomes are
      const isUnknown = step === 'send' && state === 'waiting';
      mark(item, state, isUnknown ? '' : text);
      outcome.hidden = !isUnknown;
      if (isUnknown) say({ kind: 'waiting', text });
    },
    end: say,
  };
}
