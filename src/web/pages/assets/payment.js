// Paying for a job with the wallet of the browser: x402 version 2, a signed EIP-3009 transfer.
//
// A payment that was signed is kept in this browser until its end is known, so that the same one can be sent again. While one is kept,
// nothing is signed for the same purpose, in any tab.

import {
  amountText,
  choose,
  connect,
  hexOf,
  networkText,
  pause,
  signatureOf,
  Stop,
  stop,
  typedDataOf,
} from './wallet.js';

const firstPauseMs = 1_000;
const longestPauseMs = 15_000;
const followMs = 1_000;
/** A payment is valid from a moment in the past, so that a chain whose clock is slow takes it. */
const validBeforeNowSecs = 600;

/** Whether a signed payment of this purpose is kept, because its end is not known. */
export function isKept(purpose) {
  return read(purpose) !== undefined;
}

/**
 * Pays for a job and follows its receipt to its end; a kept payment of this purpose continues, and nothing is signed.
 * @param purchase `{purpose, path, body, contentType, terms?, networks?, nonce?, isFollowed?}`. `purpose` names the purchase in this browser.
 *   `terms`: the token that was chosen, `{network, asset, amount, symbol, decimals}`; without it, any that the wallet has enough of.
 *   `networks`: the description for a wallet that does not know a network, by its CAIP-2 name, as `wallet_addEthereumChain` takes it.
 *   `nonce`: of the transfer, if the job says it; by default a random one.
 *   `isFollowed`: false if the caller follows the receipt itself.
 * @param provider the wallet (EIP-1193)
 * @param show gets each step: `(step, state, text)`; steps: `connect`, `offer`, `check`, `sign`, `send`, `deliver`; states:
 *   `active`, `waiting` (something is wrong that may end by itself), `done`, `failed`
 * @returns one of
 *   `{kind: 'completed', digest, receipt, result}`, where `result` is `{contentType, text}`;
 *   `{kind: 'accepted', digest, token}` with `isFollowed: false`: paid, and kept until the caller forgets it;
 *   `{kind: 'ended', digest, receipt, text}`: paid, and not delivered; `{kind: 'stopped', text}`: nothing was charged;
 *   `{kind: 'busy', text}`: another tab is paying
 */
export function pay(purchase, provider, show) {
  return alone(purchase.purpose, async () => {
    let step = 'connect';
    const tell = (name, state, text = '') => {
      step = name;
      show(name, state, text);
    };
    try {
      const kept = read(purchase.purpose) ?? (await sign(purchase, provider, tell));
      return await finish(purchase.purpose, kept, tell);
    } catch (error) {
      if (!(error instanceof Stop)) throw error;
      show(step, 'failed', '');
      return { kind: 'stopped', text: error.message };
    }
  });
}

/** Continues the kept payment: the same payment is sent again, or its receipt followed. Undefined if none is kept. */
export async function resume(purpose, show) {
  return isKept(purpose) ? pay({ purpose }, undefined, show) : undefined;
}

/** One flow for each purpose at a time, over all tabs of this browser. */
async function alone(purpose, run) {
  const busy = {
    kind: 'busy',
    text: 'This payment is under way already, maybe in another tab of this browser. Finish it there; here nothing was charged.',
  };
  if (!navigator.locks) return run();
  return navigator.locks.request(keyOf(purpose), { ifAvailable: true }, (lock) => (lock ? run() : busy));
}

async function sign(purchase, provider, show) {
  show('connect', 'active', 'Your wallet asks whether this page may see your address.');
  const payer = await connect(provider);
  show('connect', 'done', payer);
  show('offer', 'active');
  const { offer, nowSecs } = await ask(purchase);
  show('offer', 'done');
  show('check', 'active');
  const accepted = await choose(purchase, offer, provider, payer, show);
  show(
    'check',
    'done',
    `${amountText(accepted.amount, purchase.terms)} on ${networkText(purchase, accepted.network)}`,
  );
  const authorization = {
    from: payer,
    to: accepted.payTo,
    value: accepted.amount,
    validAfter: String(nowSecs - validBeforeNowSecs),
    validBefore: String(nowSecs + accepted.maxTimeoutSeconds),
    nonce: purchase.nonce ?? hexOf(crypto.getRandomValues(new Uint8Array(32))),
  };
  show(
    'sign',
    'active',
    'Check the amount and the recipient in your wallet, then sign. The signature costs no gas.',
  );
  const signature = await signatureOf(provider, payer, typedDataOf(accepted, authorization));
  const payment = {
    x402Version: 2,
    accepted,
    payload: { signature, authorization },
    resource: offer.resource,
    extensions: withIdentifier(offer.extensions),
  };
  const kept = {
    path: purchase.path,
    contentType: purchase.contentType,
    body: purchase.body,
    header: base64Of(JSON.stringify(payment)),
    digest: accepted.extra.quoteDigest,
    amount: amountText(accepted.amount, purchase.terms),
    isFollowed: purchase.isFollowed ?? true,
  };
  keep(purchase.purpose, kept);
  show('sign', 'done');
  return kept;
}

/** The offer in a 402, and the gateway's clock: that of this machine may be wrong. */
async function ask({ path, body, contentType }) {
  let answer;
  try {
    answer = await fetch(path, {
      method: 'POST',
      headers: { 'content-type': contentType },
      body,
      cache: 'no-store',
    });
  } catch {
    throw stop('The gateway cannot be reached.', 'Check your connection and try again.');
  }
  const header = answer.headers.get('payment-required');
  if (answer.status !== 402 || header === null) throw stop(await errorOf(answer));
  const dateMs = Date.parse(answer.headers.get('date') ?? '');
  return {
    offer: JSON.parse(textOf(header)),
    nowSecs: Math.floor((Number.isNaN(dateMs) ? Date.now() : dateMs) / 1_000),
  };
}

/** Payers may name a payment; the gateway takes one payment of a name. */
function withIdentifier(extensions = {}) {
  const offered = extensions['payment-identifier'];
  if (!offered) return extensions;
  const id = hexOf(crypto.getRandomValues(new Uint8Array(16))).slice(2);
  return { ...extensions, 'payment-identifier': { ...offered, info: { ...offered.info, id } } };
}

/** Sends the payment until its outcome is known, then follows its receipt. */
async function finish(purpose, kept, show) {
  let { token } = kept;
  if (token === undefined) {
    const accepted = await send(purpose, kept, show);
    token = accepted.receipt_token ?? '';
    keep(purpose, { ...kept, token, transaction: accepted.payment?.transaction });
    show('send', 'done', accepted.payment?.transaction ?? '');
  } else show('send', 'done', kept.transaction ?? '');
  if (kept.isFollowed === false) return { kind: 'accepted', digest: kept.digest, token };
  const end = await follow(kept.digest, token, show);
  forget(purpose);
  return end;
}

async function send(purpose, { path, contentType, body, header, amount }, show) {
  const headers = { 'content-type': contentType, 'payment-signature': header };
  const unknown = (why) =>
    `Your payment${amount === undefined ? '' : ` of ${amount}`} is signed; its outcome is not known yet. Do not pay again. ${why} This page sends the same payment until its outcome is known, and it is charged once. ${whenClosed}`;
  show('send', 'active', 'The gateway sends your payment to the chain.');
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    let answer;
    try {
      answer = await fetch(path, { method: 'POST', headers, body, cache: 'no-store' });
      if (answer.status === 202) return await answer.json();
    } catch {
      show('send', 'waiting', unknown('The gateway cannot be reached.'));
      await pause(pauseMs);
      continue;
    }
    const text = await errorOf(answer, refusedText);
    if (![408, 429].includes(answer.status) && answer.status < 500) {
      forget(purpose);
      throw stop(text);
    }
    show('send', 'waiting', unknown(text));
    const afterSecs = Number(answer.headers.get('retry-after'));
    await pause(afterSecs > 0 ? Math.min(afterSecs * 1_000, longestPauseMs) : pauseMs);
  }
}

/** The browser keeps a payment that was signed. */
const whenClosed =
  'If you close this page, this browser keeps the payment and continues with it when you open the page again.';

const ends = {
  dead_lettered:
    'The payment was taken, and what it is for could not be delivered. The operator sees this, and delivers it or pays it back.',
  refunded: 'The payment was paid back.',
  settlement_failed: 'The payment did not last on the chain, so nothing was paid.',
};

/** Follows a receipt to its end. */
async function follow(digest, token, show) {
  const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
  show(
    'deliver',
    'active',
    'The chain has the payment. You may close this page: what you paid for comes all the same, and the page shows it when you open it again.',
  );
  for (let failures = 0; ;) {
    try {
      const answer = await fetch(`/x402/receipts/${digest}`, { headers, cache: 'no-store' });
      const receipt = await answer.json();
      failures = 0;
      if (receipt.state === 'completed') {
        show('deliver', 'done');
        return { kind: 'completed', digest, receipt, result: resultOf(receipt.result) };
      }
      const text = Object.hasOwn(ends, receipt.state) && ends[receipt.state];
      if (text) {
        show('deliver', 'failed', '');
        return { kind: 'ended', digest, receipt, text };
      }
    } catch {
      failures += 1;
      show(
        'deliver',
        'waiting',
        'The gateway cannot be reached. The payment is on record: you need not keep this page open.',
      );
    }
    await pause(Math.min(followMs * 2 ** failures, longestPauseMs));
  }
}

function resultOf(result) {
  return result ? { contentType: result.content_type ?? '', text: textOf(result.body_base64) } : undefined;
}

const refusals = [
  [
    /signature|authorization_value|recipient/,
    'Your wallet has signed something else than this page asked for, or for another network.',
  ],
  [/insufficient/, 'Your wallet has too little of the token.', 'Send it some, then try again.'],
  [/account_closed/, 'The account that was to get the credit is closed.', 'Ask the operator about it.'],
  [/another_order/, 'The payment belongs to another top-up.', 'Load this page again.'],
  [/valid_before|expired/, 'The signature came too late.'],
  [/nonce/, 'This signature was used already.'],
];

/** A payment that was refused, in words for people: the gateway's own are for x402 clients. */
function refusedText({ reason = '' }) {
  const [, what = `The payment was refused (${reason}).`, next = 'Try again.'] =
    refusals.find(([pattern]) => pattern.test(reason)) ?? [];
  return `${what} Nothing was charged. ${next}`;
}

/** What the gateway says is wrong. */
async function errorOf(answer, ofOffer = ({ error }) => error) {
  const json = await answer.json().catch(() => undefined);
  if (typeof json?.error !== 'string') return `The gateway answered with status ${answer.status}.`;
  if (answer.status === 402) return ofOffer(json);
  const details = Array.isArray(json.details) ? ` ${json.details.join('; ')}.` : '';
  return `${json.error}${details}`;
}

function keyOf(purpose) {
  return `tollbook.payment.${purpose}`;
}

/** A browser may refuse to keep anything: then the payment is sent as long as this page is open. */
const unkept = new Map();

function read(purpose) {
  try {
    const text = localStorage.getItem(keyOf(purpose));
    return text === null ? unkept.get(purpose) : JSON.parse(text);
  } catch {
    return unkept.get(purpose);
  }
}

function keep(purpose, kept) {
  unkept.set(purpose, kept);
  try {
    localStorage.setItem(keyOf(purpose), JSON.stringify(kept));
  } catch {}
}

/** Nothing is kept of a payment whose end is known. */
export function forget(purpose) {
  unkept.delete(purpose);
  try {
    localStorage.removeItem(keyOf(purpose));
  } catch {}
}

function base64Of(text) {
  return btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(''));
}

function textOf(base64) {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)));
}
