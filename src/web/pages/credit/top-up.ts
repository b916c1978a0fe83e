import { randomBytes } from 'node:crypto';
import { orderContentType, writeTopUpOrder } from '../../../base/values/top-up-order.ts';
import { sha256 } from '../../../base/values/sha256.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { soldJobs } from '../../../jobs/use-cases/catalog.ts';
import { amount } from '../parts.ts';
import { walletNetworks } from '../known-networks.ts';
import { type Payable, payablesOf, paymentForm, priceIn } from '../payment.ts';
import type { Pages } from '../serve.ts';
import type { SignedInVisit } from '../site.ts';

/** An order is made right before its payment is signed. */
const orderSecs = 1_800;

/** What the module of a top-up asks for: an order for the account of the session. */
export function topUpPages(pages: Pages): void {
  pages.takeForUsers('/credit/top-up/order', { shownAt: '/credit' }, ({ site, visitor }) => {
    const { identity } = site;
    const nowSecs = Math.floor((Date.now() + identity.lane.state.clockOffsetMs) / 1_000);
    const order = { accountId: visitor.accountId, expiresAt: nowSecs + orderSecs };
    const body = writeTopUpOrder(identity.settings.secrets, order, randomBytes(16).toString('base64url'));
    return { kind: 'data', status: 200, json: { body, contentType: orderContentType, nonce: sha256(body) } };
  });
}

/** The top-ups that a wallet can pay from the page; undefined where none is sold. */
export function topUpSection(visit: SignedInVisit): Html | undefined {
  const { site, token } = visit;
  const jobs = site.jobs?.();
  const { currency } = site.chat().settings;
  const payables = jobs
    ? soldJobs(jobs.catalog)
        .filter(({ isTopUp }) => isTopUp)
        .flatMap((job) => payablesOf(jobs, job))
    : [];
  if (!jobs || payables.length === 0) return undefined;
  const gives = ({ creditMicros = 0n }: Payable): Html => html`${amount(creditMicros, currency)} for`;
  const networks = walletNetworks(jobs.settings.networks);
  return html`<section class="sheet" data-top-up>
    <h2>Top up</h2>
    <p>
      Pay with any wallet: the credit is added to the account that you are signed in to, as soon as the chain
      shows the payment.
    </p>
    ${paymentForm({
      purpose: `top-up.${visit.visitor.accountId}`,
      legend: 'Top-up',
      payables,
      networks: jobs.settings.networks,
      gives,
      fields: html`<input type="hidden" name="form" value="${token}" />`,
      button: 'Pay with your wallet',
      delivered: 'Add the credit to your account',
      without: html`<p>
          Topping up here needs JavaScript and a wallet in this browser. A program pays over x402: that credit
          belongs to the account of the wallet that pays, to which you sign in with it.
          <a href="/docs">How to pay</a>
        </p>
        <ul>
          ${payables.map(
            (payable) =>
              html`<li>
                ${gives(payable)} ${priceIn(payable, networks)}: <code>POST ${payable.path}</code>
              </li>`,
          )}
        </ul>`,
    })}
  </section>`;
}
