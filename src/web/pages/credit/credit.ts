import { formatUnits } from 'viem/utils';
import type { EventData, RecordedEvent } from '../../../ledger/rules/event.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { accountStream } from '../../../accounts/use-cases/credit/credit.ts';
import { findAccount } from '../../../accounts/store/credit.ts';
import { readLatestEvents } from '../../../ledger/store/streams.ts';
import {
  amount,
  badge,
  type Column,
  creditDigits,
  empty,
  factList,
  personName,
  shortId,
  table,
  time,
} from '../elements.ts';
import { pathWith } from '../own-path.ts';
import { notFound } from '../problem.ts';
import type { Pages } from '../serve.ts';
import type { ChatVisit, SignedInChatVisit, View } from '../visit.ts';
import { randomBytes } from 'node:crypto';
import { orderContentType, writeTopUpOrder } from '../../../base/values/top-up-order.ts';
import { sha256 } from '../../../base/values/sha256.ts';
import { isTopUpUnits, mostTopUpUnits } from '../../../base/values/top-up.ts';
import { soldJobs } from '../../../jobs/use-cases/catalog.ts';
import { networkName } from '../known-networks.ts';
import { type Payable, payablesOf, paymentForm, priceIn } from '../payment.ts';

const shownMoves = 100;

/** What a user's account has, and how it came to it. */
export function creditPages(pages: Pages<ChatVisit>): void {
  topUpPages(pages);
  pages.showForUsers('/credit', async (visit) => creditView(visit, await movesOf(visit)));

  pages.showForUsers('/credit/receipts/:quote_digest', async (visit) => {
    const move = (await movesOf(visit)).find(
      ({ topUp }) => topUp?.quote_digest === visit.params['quote_digest']?.toLowerCase(),
    );
    return move?.topUp ? receiptView(visit, move, move.topUp) : notFound('receipt', ['/credit', 'Credit']);
  });
}

interface Move {
  readonly at: Date;
  readonly label: string;
  readonly micros: bigint;
  /** Where it was bought. */
  readonly topUp?: EventData<'credit_topped_up'>;
  readonly digest?: string;
}

async function movesOf({ site, visitor }: SignedInChatVisit): Promise<readonly Move[]> {
  const { pool } = site.chat();
  const events = await readLatestEvents(pool, accountStream(visitor.accountId), shownMoves);
  return events.flatMap((event) => moveOf(event) ?? []);
}

/** A move of credit into the account, or out of it. What requests cost is not among them. */
function moveOf(event: RecordedEvent): Move | undefined {
  const at = new Date(event.at);
  switch (event.type) {
    case 'credit_granted':
      return { at, label: 'Given by the operator', micros: BigInt(event.data.amount_micros) };
    case 'credit_topped_up': {
      const { quote_digest: digest, amount_micros: micros } = event.data;
      return { at, label: 'Top-up', micros: BigInt(micros), topUp: event.data, digest };
    }
    case 'credit_reversed': {
      const { quote_digest: digest, amount_micros: micros } = event.data;
      return { at, label: 'Top-up reversed: its payment did not last', micros: -BigInt(micros), digest };
    }
    case 'credit_expired':
      return { at, label: 'Expired', micros: -BigInt(event.data.amount_micros) };
    default:
      return undefined;
  }
}

async function creditView(visit: SignedInChatVisit, moves: readonly Move[]): Promise<View> {
  const { db, settings } = visit.site.chat();
  const { currency } = settings;
  const account = await findAccount(db, { accountId: visit.visitor.accountId });
  const topUp = topUpSection(visit);
  const figure = (label: string, micros: number | undefined, hint: string, isBalance = false): Html =>
    html`<div class="sheet figure" ${isBalance && html`data-balance`}>
      <span class="label">${label}</span>${amount(BigInt(micros ?? 0), currency)}<span class="hint"
        >${hint}</span
      >
    </div>`;
  const digits = creditDigits(moves.map(({ micros }) => micros));
  const columns: Column<Move>[] = [
    { label: 'When', cell: ({ at }) => time(at) },
    {
      label: 'What',
      cell: ({ label, digest }) =>
        digest === undefined ? label : html`<a href="/credit/receipts/${digest}">${label}</a>`,
    },
    {
      label: 'Amount',
      isNumber: true,
      cell: ({ micros }) => amount(micros, currency, { hasSign: true, digits }),
    },
  ];
  const body = html`<div class="head"><h1>Credit</h1></div>
    <div class="grid" data-figures>
      ${figure('You can spend', account?.balanceMicros, 'on models that have a price', true)}
      ${figure('Held', account?.heldMicros, 'for running requests; the rest of it returns')}
      ${figure('Used so far', account?.usedMicros, 'by all your keys and sessions')}
    </div>
    ${topUp}
    <div data-history>
      ${
        moves.length === 0
          ? noCredit(visit, topUp !== undefined)
          : html`<section class="sheet">
              ${table('History', columns, moves)}
              <p class="hint">
                ${moves.length === shownMoves && `The last ${shownMoves} entries. `}The cost of each request
                is under <a href="/usage/requests">Requests</a>.
              </p>
            </section>`
      }
    </div>`;
  return { kind: 'view', title: 'Credit', section: 'credit', body, ...(topUp && { scripts: ['credit.js'] }) };
}

function noCredit({ site, visitor }: SignedInChatVisit, canTopUp: boolean): Html {
  const title = 'No credit yet';
  if (canTopUp)
    return empty(title, 'Each payment will be listed here, with its receipt, as soon as the chain shows it.');
  const free = [...site.chat().models.values()].find(({ price }) => price === undefined);
  return empty(
    title,
    html`The operator of ${site.settings.name} gives it: ask for it, for the account of
    ${personName(visitor.user.email)}. ${free && 'Free models need none.'}`,
    free && html`<a class="button" href="${pathWith('/try', { model: free.name })}">Try a free model</a>`,
  );
}

function receiptView(
  visit: SignedInChatVisit,
  { at, micros }: Move,
  topUp: EventData<'credit_topped_up'>,
): View {
  const { currency } = visit.site.chat().settings;
  const { quote_digest: digest, payer, atoms, decimals, symbol, network } = topUp;
  const body = html`<p><a href="/credit">Credit</a></p>
    <div class="sheet">
      <div class="head">
        <h1>${amount(micros, currency, { hasSign: true })} of credit</h1>
        ${badge('paid', 'good')}
      </div>
      ${factList([
        ['When', time(at)],
        ['Paid', html`${formatUnits(BigInt(atoms), decimals)} <span class="unit">${symbol}</span>`],
        ['By wallet', shortId(payer, 'the wallet')],
        ['Network', networkName(network, visit.site.jobs?.().settings.networks)],
        ['Receipt', shortId(digest, 'the digest of the receipt')],
      ])}
      ${visit.site.jobs && html`<p><a href="/jobs/receipts/${digest}">The receipt of the payment, with its proof</a></p>`}
    </div>`;
  return { kind: 'view', title: 'Top-up', section: 'credit', body };
}

/** An order is made right before its payment is signed. */
const orderSecs = 1_800;

const unitsNeeded = `The number of top-ups must be a whole number from 1 to ${mostTopUpUnits}. Nothing was charged.`;

/** What the module of a top-up asks for: an order for the account of the session. */
function topUpPages(pages: Pages<ChatVisit>): void {
  pages.takeForUsers('/credit/top-up/order', { shownAt: '/credit' }, ({ site, visitor }, { fields }) => {
    const { identity } = site;
    const text = fields.get('units') ?? '1';
    const units = /^\d{1,3}$/.test(text) ? Number(text) : 0;
    if (!isTopUpUnits(units)) return { kind: 'data', status: 422, json: { error: unitsNeeded } };
    const nowSecs = Math.floor((Date.now() + identity.lane.state.clockOffsetMs) / 1_000);
    const order = { accountId: visitor.accountId, units, expiresAt: nowSecs + orderSecs };
    const body = writeTopUpOrder(identity.settings.secrets, order, randomBytes(16).toString('base64url'));
    return { kind: 'data', status: 200, json: { body, contentType: orderContentType, nonce: sha256(body) } };
  });
}

/** The top-ups that a wallet can pay from the page; undefined if none is sold. */
function topUpSection(visit: SignedInChatVisit): Html | undefined {
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
  const { networks } = jobs.settings;
  return html`<section class="sheet" data-top-up>
    <h2>Top up</h2>
    ${paymentForm({
      purpose: `top-up.${visit.visitor.accountId}`,
      legend: 'Top-up',
      payables,
      networks,
      gives,
      fields: html`<input type="hidden" name="form" value="${token}" />
        <p>
          Any wallet can pay. The credit is added to your account as soon as the chain shows the payment.
        </p>`,
      more: html`<p class="units">
        <label
          >Number of top-ups
          <input
            type="number"
            name="units"
            min="1"
            max="${mostTopUpUnits}"
            step="1"
            value="1"
            required /></label
        ><output data-total data-currency="${currency}"></output>
      </p>`,
      button: 'Pay with your wallet',
      delivered: 'Add the credit to your account',
      without: html`<p>
          This browser has no wallet, or JavaScript is off. Open this page in a browser with a wallet to add
          credit to your account, or pay with a program.
        </p>
        <p>
          A program pays over x402, and its credit goes to the account of the wallet that pays: yours, if you
          sign in with that wallet. The body <code>{"units": 5}</code> buys five times as much, up to
          ${mostTopUpUnits} times. <a href="/docs">How a program pays</a>
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
