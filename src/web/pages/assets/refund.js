// Refunding a payment with the wallet of the operator's browser.
//
// That the refund is sent is recorded before the wallet is asked, and its transaction as soon as the wallet names it. What the wallet named
// is kept in this browser until the gateway has it. A page that is loaded again continues from there, and never asks a wallet twice.

import { offerWallets, stepsOf } from './pay-form.js';
import {
  balanceOf,
  amountText,
  chainOf,
  changeNetwork,
  codeOf,
  connect,
  findWallets,
  networkText,
  pause,
  Stop,
} from './wallet.js';

const followMs = 2_000;
const place = document.querySelector('[data-refund]');

/** An error whose sentence says what was sent. */
class Told extends Error {}

if (place) await begin();

async function begin() {
  const { refund: path, state, transaction } = place.dataset;
  const token = JSON.parse(place.dataset.token);
  const refund = { path, token, networks: JSON.parse(place.dataset.networks) };
  const steps = stepsOf(place);
  const hint = place.querySelector('[data-without-wallet]');
  if (state === 'sending') {
    const known = transaction || localStorage.getItem(keyOf(path));
    hint.hidden = true;
    if (!known) {
      // no wallet is asked, as another page may have asked one: the first line of the page says what to do
      place.hidden = true;
      return;
    }
    await run(steps, async () => {
      if (!transaction) await note(path, known);
      await follow(path, steps);
    });
    return;
  }
  const form = place.querySelector('form');
  const begun = {};
  const wallets = await findWallets();
  hint.hidden = wallets.length > 0;
  form.hidden = wallets.length === 0;
  offerWallets(form, wallets);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const { provider } = wallets[Number(new FormData(form).get('wallet') ?? 0)];
    for (const button of form.querySelectorAll('button')) button.disabled = true;
    void run(steps, async () => {
      try {
        await send({ ...refund, begun, evidence: new FormData(form).get('evidence') }, provider, steps.show);
      } catch (error) {
        // no wallet has sent it: it may be tried again from this page, which alone knows that
        if (error instanceof Stop)
          for (const button of form.querySelectorAll('button')) button.disabled = false;
        throw error;
      }
      await follow(path, steps);
    });
  });
}

async function run(steps, work) {
  steps.begin();
  try {
    await work();
  } catch (error) {
    const text =
      error instanceof Stop
        ? `${error.what} Nothing was sent. ${error.next}`
        : error instanceof Told
          ? error.message
          : `This page failed: ${error?.message ?? error}. Load it again before you do anything else.`;
    steps.end({ kind: 'stopped', text });
  }
}

async function send({ path, token, networks, begun, evidence }, provider, show) {
  show('connect', 'active', 'Your wallet asks whether this page may see your address.');
  const from = await connect(provider);
  show('connect', 'done', from);
  show('check', 'active');
  if ((await chainOf(provider)) !== token.network) {
    show(
      'check',
      'active',
      `Your wallet asks whether to change to ${networkText({ networks }, token.network)}.`,
    );
    await changeNetwork({ networks }, provider, token.network);
    if ((await chainOf(provider)) !== token.network)
      throw new Stop(
        'Your wallet is on another network.',
        `Change it to ${networkText({ networks }, token.network)}.`,
      );
  }
  const has = await balanceOf(provider, token.asset, from);
  if (has !== undefined && has < BigInt(token.amount))
    throw new Stop(
      `Your wallet has ${amountText(has, token)}, and ${amountText(token.amount, token)} are needed.`,
    );
  show('check', 'done', `${amountText(token.amount, token)} on ${networkText({ networks }, token.network)}`);
  show('claim', 'active');
  // a refund that the wallet refused stays started, for the same sender
  if (begun.from !== undefined && begun.from !== from)
    throw new Stop('This refund was started for another account.', `Choose ${begun.from} in your wallet.`);
  begun.call ??= (await post(`${path}/start`, { sender: from, ...(evidence && { evidence }) })).call;
  begun.from = from;
  if ((await progress(path)).state !== 'started')
    throw new Told('This refund is not under way any more, or was sent. Load this page again.');
  const { call } = begun;
  show('claim', 'done');
  show('send', 'active', `Check in your wallet that ${amountText(token.amount, token)} go to ${token.to}.`);
  const transaction = await transfer(provider, { from, ...call, value: '0x0' });
  localStorage.setItem(keyOf(path), transaction);
  show('send', 'done', transaction);
  await note(path, transaction);
}

/** What the wallet sent. A refusal of its user ends it; after anything else the outcome is unknown. */
async function transfer(provider, call) {
  let answer;
  try {
    answer = await provider.request({ method: 'eth_sendTransaction', params: [call] });
  } catch (error) {
    if (codeOf(error) !== 4001)
      throw new Told(
        'Your wallet did not say whether it has sent the refund. Look there, then load this page again and say what you found.',
      );
    throw new Stop(
      'You have refused the transfer in your wallet.',
      'Send it from this page, or load the page again and say below that it was not sent: two operators have to.',
    );
  }
  if (!/^0x[0-9a-f]{64}$/i.test(answer ?? ''))
    throw new Told('Your wallet answered without a transaction. Look there, then load this page again.');
  return answer.toLowerCase();
}

async function note(path, transaction) {
  await post(`${path}/sent`, { transaction });
  localStorage.removeItem(keyOf(path));
}

/** Waits until the transaction is final, then records the refund by it. */
async function follow(path, steps) {
  let transaction;
  for (;;) {
    const { state, text, transaction: known } = await progress(path);
    if (state === 'none') throw new Told('This refund is not under way any more. Load this page again.');
    if (state === 'failed') throw new Told(text);
    transaction = known;
    if (state === 'final') break;
    steps.show('final', 'waiting', text);
    await pause(followMs);
  }
  steps.show('final', 'done', '');
  steps.show('record', 'active', '');
  const form = document.querySelector('form[action$="/record"]');
  form.elements.transaction.value = transaction;
  form.requestSubmit();
}

/** How far the gateway knows this refund to be. */
async function progress(path) {
  const answer = await fetch(`${path}/transaction`, { headers: { accept: 'application/json' } }).catch(
    () => undefined,
  );
  if (answer && [401, 403].includes(answer.status))
    throw new Told('Your session has ended. Sign in and open this page again: it continues from here.');
  return answer?.ok ? answer.json() : { state: 'waiting', text: 'The gateway did not answer.' };
}

async function post(path, fields = {}) {
  const form = document.querySelector('main input[name="form"]').value;
  let answer;
  try {
    answer = await fetch(path, {
      method: 'POST',
      headers: { accept: 'application/json' },
      body: new URLSearchParams({ form, ...fields }),
      redirect: 'manual',
    });
  } catch {
    throw new Told('The gateway cannot be reached. Load this page again before you do anything else.');
  }
  if (answer.type === 'opaqueredirect')
    throw new Told(
      'Your session has ended, or this page is too old. Load it again: it continues from there.',
    );
  const said = answer.headers.get('content-type')?.includes('json') ? await answer.json() : {};
  if (answer.ok) return said;
  throw new Told(said.message ?? `The gateway answered with status ${answer.status}. Load this page again.`);
}

function keyOf(path) {
  return `tollbook.refund:${path}`;
}
