// Buying a job: its order is paid with the wallet of the browser, and its receipt is followed to its end.

import { bindPayForm } from './pay-form.js';
import { forget } from './payment.js';
import { hexOf, pause, stop } from './wallet.js';

const ordersKey = 'tollbook.orders';
const mostOrders = 50;
const followMs = 1_000;
const longestPauseMs = 15_000;

let unkept = [];

for (const order of document.querySelectorAll('[data-order]')) void bindOrder(order);
for (const receipt of document.querySelectorAll('[data-follow]')) void follow(receipt);

/** An order is paid once, in however many tabs it is open: the browser keeps the purchase, and the payment while its end is unknown. */
async function bindOrder(place) {
  const { order: id, path, contentType, body } = place.dataset;
  const notice = place.querySelector('[data-bought]');
  const payment = place.querySelector('.pay');
  const formToken = place.querySelector('[data-form-token]').value;
  const showBought = () => {
    const known = bought(id);
    notice.hidden = !known;
    payment.hidden = Boolean(known);
    return known;
  };
  notice.querySelector('button').addEventListener('click', async () => {
    location.assign(await openReceipt(id, formToken));
  });
  // another tab has paid meanwhile
  addEventListener('storage', showBought);
  addEventListener('pageshow', showBought);
  if (showBought()) return;
  await bindPayForm(payment, {
    prepare() {
      if (showBought()) throw stop('This was paid already.');
      return { path, contentType, body: JSON.parse(body), nonce: nextNonce(id), isFollowed: false };
    },
    async completed({ digest, token }) {
      // without a token the order was paid by another payment with its nonce, whose receipt has another name
      keepOrder({ id, isPaid: true, ...(token === '' ? {} : { digest, token }) });
      forget(`order:${id}`);
      // the back button must not lead to a form that was sent
      location.replace(await openReceipt(id, formToken));
      return 'Paid. Here is the receipt…';
    },
  });
}

/** Lets this browser see the result: then its token is kept only in a cookie, which no script reads. Returns where the receipt is. */
async function openReceipt(id, formToken) {
  const { digest, token } = bought(id);
  if (token) {
    const body = new URLSearchParams({ form: formToken, digest, token });
    try {
      await fetch('/jobs/receipts', { method: 'POST', body, redirect: 'manual' });
      keepOrder({ id, isPaid: true, digest });
    } catch {}
  }
  return digest === undefined ? '/jobs/receipts' : `/jobs/receipts/${digest}`;
}

/**
 * The first payment of an order has its nonce, so that it is paid once also if a browser keeps nothing. No payment is kept when
 * another one is signed: the one before was refused, and a nonce that was refused may be used up.
 */
function nextNonce(id) {
  const { tries = 0 } = orderOf(id) ?? {};
  keepOrder({ id, tries: tries + 1 });
  return tries === 0 ? id : hexOf(crypto.getRandomValues(new Uint8Array(32)));
}

function readOrders() {
  try {
    return JSON.parse(localStorage.getItem(ordersKey)) ?? unkept;
  } catch {
    return unkept;
  }
}

function orderOf(id) {
  return readOrders().find((one) => one.id === id);
}

function bought(id) {
  const order = orderOf(id);
  return order?.isPaid ? order : undefined;
}

/** A browser may refuse to keep anything: then this page does. */
function keepOrder(one) {
  const others = readOrders().filter(({ id }) => id !== one.id);
  unkept = [one, ...others].slice(0, mostOrders);
  try {
    localStorage.setItem(ordersKey, JSON.stringify(unkept));
  } catch {}
}

/** Looks until something has happened to a call, then at the page anew. */
async function follow({ dataset: { follow: digest, events, open } }) {
  if (open === '') return;
  for (let pauseMs = followMs; ;) {
    await pause(pauseMs);
    if (document.hidden) continue;
    try {
      const answer = await fetch(`/x402/receipts/${digest}`, { cache: 'no-store' });
      const receipt = await answer.json();
      if (answer.ok && receipt.events.length > Number(events)) return location.reload();
      pauseMs = followMs;
    } catch {
      pauseMs = Math.min(2 * pauseMs, longestPauseMs);
    }
  }
}
