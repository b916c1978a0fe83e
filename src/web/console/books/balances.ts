import { formatUnits } from 'viem/utils';
import { bridgeReasonTexts } from '../../../finance/rules/reconcile/bridge.ts';
import type { AccountJson, ReportJson } from '../../../finance/rules/reconcile/report.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { digitsOf, shortId } from '../../pages/elements.ts';
import { networkName } from '../../pages/known-networks.ts';
import { className, paymentLink, reportedAmount, transactionWithLink, words } from './books-view.ts';

type Bridge = NonNullable<AccountJson['bridge']>;
type BridgeItem = Bridge['lines'][number]['items'][number];

/** Items of a line that are shown; the report has them all. */
const mostItems = 20;

/**
 * Each account of a report: opening, movements and closing on the chain, and the way from there to the books.
 * @param open the breaks of the report without an explanation: while there are some, nothing ties out
 */
export function balancesOf({ accounts }: ReportJson, open: number): Html {
  if (accounts.length === 0)
    return html`<section class="sheet">
      <h2>Balances</h2>
      <p class="muted">No token was received, or moved, in this period.</p>
    </section>`;
  return html`${accounts.map((account) => accountSheet(account, open))}`;
}

function accountSheet(account: AccountJson, open: number): Html {
  const { network, asset, pay_to: payee, symbol, opening, movements, closing, ledger } = account;
  const digits = digitsIn(account);
  const money = (atoms: string | null): Html => reportedAmount(atoms, account, digits) ?? html`unknown`;
  // the books, below, close with the same
  const isSaidBelow = account.bridge?.books === ledger.closing;
  return html`<section class="sheet">
    <h2>${symbol ?? shortId(asset, 'the token')} at ${shortId(payee, 'the payee')}</h2>
    <p class="hint">on ${networkName(network)}</p>
    <table class="statement">
      <caption>
        On the chain
      </caption>
      <thead>
        <tr>
          <th scope="col">What</th>
          <th scope="col" class="number">Transfers</th>
          <th scope="col" class="number">In</th>
          <th scope="col" class="number">Out</th>
          <th scope="col" class="number">Balance</th>
        </tr>
      </thead>
      <tbody>
        ${line('Opening', endText(opening, money), 4)}
        ${movements.map(
          ({ class: name, count, in: came, out }) =>
            html`<tr>
              <td data-label="What"><span>${className(name)}</span></td>
              <td class="number" data-label="Transfers"><span>${count}</span></td>
              <td class="number" data-label="In"><span>${came !== '0' && money(came)}</span></td>
              <td class="number" data-label="Out"><span>${out !== '0' && money(out)}</span></td>
              <td class="number" data-label="Balance"><span></span></td>
            </tr>`,
        )}
        ${line('Closing', endText(closing, money), 4)}
        ${!isSaidBelow && line('The ledger closes with', money(ledger.closing), 4)}
      </tbody>
    </table>
    ${account.bridge === null && html`<p class="notice bad">There are no books: the events contradict each other.</p>`}
    ${account.bridge ? bridgeTable(account.bridge, account, { money, open }) : undefined}
  </section>`;
}

/** After the point, so that the amounts of the account's tables are below one another. */
function digitsIn({ opening, closing, ledger, movements, bridge, decimals }: AccountJson): number {
  const atoms = [
    opening.atoms,
    closing.atoms,
    ledger.closing,
    ...movements.flatMap((movement) => [movement.in, movement.out]),
    ...(bridge ? [bridge.books, bridge.unconfirmed, bridge.treasury, bridge.opening] : []),
    ...(bridge?.lines ?? []).map((one) => one.atoms),
  ];
  const exact = atoms.flatMap((one) => (one === null ? [] : [formatUnits(BigInt(one), decimals ?? 0)]));
  return digitsOf(exact, Math.min(2, decimals ?? 0));
}

/** A balance, in the last column of the table. `labelColumns`: those before it; `isPart`: it is added to others. */
function line(label: string, value: Html, labelColumns = 1, isPart = false): Html {
  return html`<tr class="sum ${isPart && 'part'}">
    <td colspan="${labelColumns}" data-label=""><span>${label}</span></td>
    <td class="number" data-label=""><span>${value}</span></td>
  </tr>`;
}

function endText({ atoms, how }: AccountJson['opening'], money: (atoms: string | null) => Html): Html {
  if (atoms === null) return html`unknown: no archive state`;
  return html`${money(atoms)}${how === 'computed' && html` <span class="hint">computed</span>`}`;
}

/** From the books' closing to that of the chain, so that nothing is left to be added up. */
function bridgeTable(
  bridge: Bridge,
  account: AccountJson,
  { money, open }: { readonly money: (atoms: string | null) => Html; readonly open: number },
): Html {
  const { closing } = account;
  const optional = (label: string, atoms: string | null): Html | false =>
    atoms !== null && atoms !== '0' && line(label, money(atoms), 1, true);
  return html`<table class="statement">
      <caption>
        From the books to the chain
      </caption>
      <thead>
        <tr>
          <th scope="col">Why</th>
          <th scope="col" class="number">Amount</th>
        </tr>
      </thead>
      <tbody>
        ${line('The books close with', money(bridge.books))}
        ${optional('Not confirmed yet', bridge.unconfirmed)} ${optional('In the treasury', bridge.treasury)}
        ${optional('At the opening', bridge.opening)}
        ${bridge.lines.map(({ reason, count, atoms }) =>
          line(`${bridgeReasonTexts[reason] ?? className(reason)} (${count})`, money(atoms), 1, true),
        )}
        ${closing.atoms !== null && line('So the chain has', money(closing.atoms))}
      </tbody>
    </table>
    ${tieOut(bridge, money, open)}
    ${bridge.lines.map(
      ({ reason, count, items }) =>
        items.length > 0 &&
        html`<details>
          <summary>${bridgeReasonTexts[reason] ?? className(reason)}: ${count}</summary>
          <ul class="rows">
            ${items.slice(0, mostItems).map((item) => html`<li>${bridgeItem(item, account)}</li>`)}
          </ul>
          ${count > mostItems && html`<p class="hint">And ${count - mostItems} more, in the report.</p>`}
        </details>`,
    )}`;
}

function tieOut({ not_explained: left }: Bridge, money: (atoms: string | null) => Html, open: number): Html {
  if (left === null)
    return html`<p class="notice warn">
      The node has no state of one of the ends, so whether anything is left cannot be said.
    </p>`;
  if (left === '0' && open > 0)
    return html`<p class="notice bad">
      These lines account for the whole difference, but ${open === 1 ? '1 break' : `${open} breaks`} of this
      report ${open === 1 ? 'is' : 'are'} not explained.
    </p>`;
  return left === '0'
    ? html`<p class="notice good">It ties out: these lines account for the whole difference.</p>`
    : html`<p class="notice bad">Not explained: ${money(left)}</p>`;
}

function bridgeItem(item: BridgeItem, account: AccountJson): Html {
  const { of, quote_digest: digest, transaction, block_number: block, seq, atoms } = item;
  return html`<span
      >${words(of)} ${digest !== undefined && paymentLink(digest)}
      ${transaction !== undefined && transactionWithLink(account.network, transaction)}
      <span class="hint"
        >${block !== undefined && `block ${block} `}${seq !== undefined && `event ${seq}`}</span
      ></span
    ><span class="number">${reportedAmount(atoms, account)}</span>`;
}
