import { explanationClasses } from '../../../ledger/rules/explanation-class.ts';
import { includesRole } from '../../../base/values/operator-role.ts';
import type { ReportJson } from '../../../finance/rules/reconcile/report.ts';
import type { ItemFields } from '../../../finance/rules/reconcile/tally.ts';
import { html, type Html, type Shown } from '../../../base/values/html.ts';
import { operatorTextPattern } from '../../../base/values/operator-words.ts';
import { isHex32 } from '../../../base/values/primitives.ts';
import {
  badge,
  type Column,
  field,
  form,
  shortId,
  table,
  time,
  selectField,
  factList,
} from '../../pages/elements.ts';
import { notFound } from '../../pages/problem.ts';
import type { View } from '../../pages/visit.ts';
import {
  explainBreak,
  findBreak,
  type Explained,
  type FoundBreak,
  isSaidOpen,
  readExplanations,
} from '../../../finance/use-cases/reconcile/explain-break.ts';
import type { Console, ConsoleSite, OperatorVisit } from '../visit.ts';
import { reconcileAgain } from './make-reconciliation.ts';
import { came, moneyAction, moneyForm } from './record-money.ts';
import { networkName } from '../../pages/known-networks.ts';
import {
  booksPath,
  booksView,
  className,
  paymentLink,
  reportedAmount,
  transactionWithLink,
  words,
} from './books-view.ts';
import { reportOf, type StoredReport } from './stored-report.ts';

const path = `${booksPath}/reconciliations/:id/breaks/:break`;

/** Each break of a run, and the operator's explanation. */
export function breakPages(console: Console, { jobs }: ConsoleSite): void {
  console.show(path, (visit) => breakView(visit, undefined, visit.query));
  if (jobs) moneyAction(console, { path, pageOf: pathOf, show: breakView });
  console.act(
    `${path}/explain`,
    {
      role: 'finance',
      action: 'explain_break',
      subject: ({ params }) => params['break'],
      shownAt: pathOf,
    },
    async (visit, { fields }) => {
      const { site, operator } = visit;
      const as = explanationClasses.find((one) => one === fields.get('as'));
      const note = fields.get('note')?.trim() ?? '';
      if (!as) return breakView(visit, 'There is no such category. Nothing was recorded.', fields);
      if (!operatorTextPattern.test(note)) return breakView(visit, noteMistake, fields);
      const found = await findIn(await reportOf(visit), visit.params['break']);
      if (!found) return notFound('break');
      await explainBreak(site.ledger.lane, found, { as, note, operator: operator.name });
      return {
        kind: 'redirect',
        to: pathOf(visit.params),
        // an explanation is the first line of the page
        ...(as === 'open' && { notice: 'break_opened' }),
      };
    },
  );
}

const noteMistake =
  'The note is kept for ever: 1 to 200 visible ASCII characters, without "@". Nothing was recorded.';

function pathOf(params: OperatorVisit['params']): string {
  return `${booksPath}/reconciliations/${params['id'] ?? ''}/breaks/${params['break'] ?? ''}`;
}

async function findIn(stored: StoredReport | undefined, breakId: string | undefined) {
  if (!stored || breakId === undefined || !isHex32(breakId)) return undefined;
  const found = await findBreak([stored.report], breakId);
  return found.kind === 'found' ? found : undefined;
}

interface BreakLink {
  readonly href: string;
  readonly said: readonly Explained[] | undefined;
  /** Whether this operator may explain it there. */
  readonly isExplainable: boolean;
}

/** Items of a report as a table. `more`: the page of a break, and its explanations so far. */
export function itemsTable(
  caption: string,
  report: ReportJson,
  items: readonly { readonly name: string; readonly item: ItemFields }[],
  more?: (item: ItemFields) => BreakLink,
): Html {
  type Row = (typeof items)[number];
  const what: Column<Row> = {
    label: 'What',
    cell: ({ name, item }) =>
      more
        ? html`<a href="${more(item).href}">${className(name)}</a>
            <span class="line hint">${breakTexts[name]}</span>`
        : html`${words(item.of)}`,
  };
  const said: Column<Row> = { label: 'Explanation', cell: ({ item }) => more && explanationOf(more(item)) };
  const columns: Column<Row>[] = [
    what,
    { label: 'Ledger', isNumber: true, cell: ({ item }) => amountIn(report, item, item.ledger_amount) },
    { label: 'Chain', isNumber: true, cell: ({ item }) => amountIn(report, item, item.chain_amount) },
    {
      label: 'Payment',
      cell: ({ item: { quote_digest: digest } }) => (digest === undefined ? '' : paymentLink(digest)),
    },
    {
      label: 'Transaction',
      cell: ({ item }) =>
        item.transaction === undefined ? '' : shortId(item.transaction, 'the transaction'),
    },
    { label: 'Why', cell: ({ item }) => (item.why === undefined ? '' : words(item.why)) },
    ...(more ? [said] : []),
  ];
  const isShown = ({ cell }: Column<Row>): boolean =>
    items.some((row) => {
      const shown = cell(row);
      return shown !== undefined && shown !== '';
    });
  return table(caption, columns.filter(isShown), items);
}

function explanationOf({ href, said, isExplainable }: BreakLink): Html {
  return isSaidOpen(said) && isExplainable
    ? html`${saidBadge(said)} <a class="line" href="${href}">Explain it</a>`
    : saidBadge(said);
}

/** An item without a final outcome is open; a break that no operator has explained is something else. */
function saidBadge(said: readonly Explained[] | undefined): Html {
  return isSaidOpen(said) ? badge('not explained', 'bad') : badge(classText(said?.at(-1)?.data.as), 'good');
}

function classText(as: string | undefined): string {
  return as === 'open' ? 'not explained any more' : words(as ?? '');
}

export function amountIn(report: ReportJson, item: ItemFields, atoms: string | undefined): Html | undefined {
  const { network, asset } = item;
  const token = report.accounts.find((one) => one.network === network && one.asset === asset);
  return reportedAmount(atoms, token ?? { network, asset });
}

async function breakView(visit: OperatorVisit, mistake?: string, typed?: URLSearchParams): Promise<View> {
  const stored = await reportOf(visit);
  const found = await findIn(stored, visit.params['break']);
  if (!stored || !found) return notFound('break');
  const { breakId, itemClass, item } = found;
  const said = (await readExplanations(visit.site.ledger.pool, [breakId])).get(breakId) ?? [];
  const isOpen = isSaidOpen(said);
  const mayAct = includesRole(visit.operator.role, 'finance');
  const differs = breakTexts[itemClass] ?? 'Ledger and chain differ.';
  const forms = html`<div class="grid pair">
    ${recordForm(visit, found, stored.report, { typed, mistake })} ${explainForm(visit, typed)}
  </div>`;
  const body = html`${standingOf(said.at(-1), differs, mayAct)} ${mayAct && isOpen && forms}
    <section class="sheet">
      <h2>What differs</h2>
      ${!isOpen && html`<p>${differs}</p>`}
      ${factList([...factsOf(stored.report, item), ['Id of the break', shortId(breakId, 'the id of the break')]])}
    </section>
    ${said.length > 1 && explanationsSheet(said)}
    ${
      mayAct &&
      !isOpen &&
      html`<details>
        <summary>Record or explain it otherwise</summary>
        ${forms}
      </details>`
    }`;
  return booksView(visit.site, booksPath, `Break ${breakId.slice(0, 10)}`, body, {
    up: [`${booksPath}/reconciliations/${stored.id}`, `Reconciliation ${stored.id}`],
    heading: `Break: ${className(itemClass)}`,
    beside: saidBadge(said),
    mistake,
  });
}

/** Each explanation, the last one first. */
function explanationsSheet(said: readonly Explained[]): Html {
  return html`<section class="sheet">
    <h2>All explanations, the last one first</h2>
    <ol class="timeline">
      ${said.toReversed().map(
        ({ data, at }) =>
          html`<li>
            <p class="event">
              <strong>${classText(data.as)}</strong>
              <span class="hint">${data.operator}, ${time(new Date(at))}</span>
            </p>
            <p>${data.note}</p>
          </li>`,
      )}
    </ol>
  </section>`;
}

/** Whether the break needs anybody, and what to do about it. */
function standingOf(last: Explained | undefined, differs: string, mayAct: boolean): Html {
  if (last && !isSaidOpen([last]))
    return html`<p class="notice good">
      Explained by ${last.data.operator} as ${classText(last.data.as)}: “${last.data.note}”. The next reports
      say so, and nothing is left to do.
    </p>`;
  const next = mayAct ? 'Record what it is, or explain it.' : 'An operator of finance has to explain it.';
  return html`<p class="notice bad">Not explained: ${differs} ${next}</p>`;
}

/** What each class of breaks says. */
const breakTexts: Readonly<Record<string, string>> = {
  missing_on_chain: 'The ledger has it, and the chain has not.',
  on_chain_without_event: 'Money came on the chain, and no event of the ledger says why.',
  amount_mismatch: 'Ledger and chain have different amounts.',
  asset_mismatch: 'Ledger and chain have different tokens.',
  payee_mismatch: 'The money went to another address than the ledger says.',
  duplicate_claim: 'Its transfer belongs to something else in the ledger.',
  quote_terms_differ: 'The payment matches none of the options of its quote.',
  foreign_use: 'Money left a payee, and no sweep or refund of it is recorded.',
  token_decimals_differ: 'The contract of the token has other decimals than the ledger.',
};

/** The breaks that a record of a transfer puts right: what it may be. */
export const recordable: Readonly<Record<string, Parameters<typeof moneyForm>[2]['kinds']>> = {
  on_chain_without_event: came,
  foreign_use: ['sweep'],
};

function recordForm(
  visit: OperatorVisit,
  { itemClass, item }: FoundBreak,
  { period }: ReportJson,
  sent: Pick<Parameters<typeof moneyForm>[2], 'typed' | 'mistake'>,
): Html | undefined {
  const kinds = recordable[itemClass];
  const { network, transaction } = item;
  if (!visit.site.jobs || !kinds || transaction === undefined) return undefined;
  return html`<section class="sheet">
    <h2>Record what it is</h2>
    <p>Then reconcile its period again, which ends the break.</p>
    ${moneyForm(visit, pathOf(visit.params), { kinds, given: { network, transaction }, ...sent })}
    ${reconcileAgain(visit, period)}
  </section>`;
}

function explainForm(visit: OperatorVisit, typed: URLSearchParams | undefined): Html {
  return html`<section class="sheet">
    <h2>Explain it</h2>
    ${form(
      visit,
      `${pathOf(visit.params)}/explain`,
      html`${selectField({ label: 'Category', name: 'as', values: explanationClasses, value: typed?.get('as'), texts: { open: classText('open') } })}
        ${field({ label: 'Note', name: 'note', value: typed?.get('note'), maxLength: 200, autocomplete: 'off', hint: 'What you know about it. It is recorded with your name, and the next reports have it.' })}
        <button>Record it</button>`,
    )}
  </section>`;
}

/** What a report says of an item, by name. */
function factsOf(report: ReportJson, item: ItemFields): [string, Shown][] {
  const { network, transaction, chain_asset: chainAsset } = item;
  return [
    ['Network', networkName(network)],
    ['By the ledger', amountIn(report, item, item.ledger_amount)],
    ['On the chain', amountIn(report, item, item.chain_amount)],
    ['Refunded', amountIn(report, item, item.refunded_amount)],
    ['Token', chainAsset === undefined ? undefined : address(item.asset, 'the token')],
    ['Token on the chain', address(chainAsset, 'the token on the chain')],
    ['Decimals', item.decimals],
    ['Decimals of the contract', item.chain_decimals ?? undefined],
    ['Payment', item.quote_digest === undefined ? undefined : paymentLink(item.quote_digest)],
    ['Payee', item.pay_to === item.to ? undefined : address(item.pay_to, 'the payee')],
    ['Payer', address(item.payer, 'the payer')],
    ['From', address(item.from, 'the sender')],
    ['To', address(item.to, 'the recipient')],
    ['Transaction', transaction === undefined ? undefined : transactionWithLink(network, transaction)],
    ['Block', item.block_number],
    ['Log index', item.log_index],
    ['Event', item.seq],
    ['Recorded', item.recorded_at === undefined ? undefined : time(new Date(item.recorded_at))],
    ['Why', item.why === undefined ? undefined : words(item.why)],
    ['Authorization', item.foreign === true && 'not of this ledger'],
    ['Carried', item.carried === true && 'from an earlier period'],
  ];
}

function address(value: string | undefined, what: string): Shown {
  return value === undefined ? undefined : shortId(value, what);
}
