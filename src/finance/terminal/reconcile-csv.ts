import { csvLine } from '../../base/values/csv-line.ts';
import { decimalText } from '../../base/values/entry.ts';
import { allClasses } from '../rules/reconcile/reconcile.ts';
import type { ReportJson } from '../rules/reconcile/report.ts';
import type { ItemFields } from '../rules/reconcile/tally.ts';

type Token = Pick<ReportJson['accounts'][number], 'symbol' | 'decimals'> | undefined;

const columns: readonly (readonly [
  string,
  (item: ItemFields, token: Token) => string | number | undefined,
])[] = [
  ['of', ({ of }) => of],
  ['network', ({ network }) => network],
  ['token', (_, token) => token?.symbol ?? undefined],
  ['token_address', ({ asset }) => asset],
  ['pay_to', ({ pay_to }) => pay_to],
  ['ledger_amount', ({ ledger_amount }, token) => amountText(ledger_amount, token)],
  ['chain_amount', ({ chain_amount }, token) => amountText(chain_amount, token)],
  ['ledger_atoms', ({ ledger_amount }) => ledger_amount],
  ['chain_atoms', ({ chain_amount }) => chain_amount],
  ['seq', ({ seq }) => seq],
  ['recorded_at', ({ recorded_at }) => recorded_at],
  ['quote_digest', ({ quote_digest }) => quote_digest],
  ['payer', ({ payer }) => payer],
  ['payment_nonce', ({ payment_nonce }) => payment_nonce],
  ['from', ({ from }) => from],
  ['to', ({ to }) => to],
  ['transaction', ({ transaction }) => transaction],
  ['block', ({ block_number }) => block_number],
  ['log_index', ({ log_index }) => log_index],
  ['why', ({ why }) => why],
  ['carried', ({ carried }) => (carried === true ? 'carried' : undefined)],
  ['break_id', ({ break_id }) => break_id],
  ['explained_as', ({ explained }) => explained?.as],
  ['explained_by', ({ explained }) => explained?.operator],
  ['note', ({ explained }) => explained?.note],
  ['refunded_amount', ({ refunded_amount }, token) => amountText(refunded_amount, token)],
  ['refunded_atoms', ({ refunded_amount }) => refunded_amount],
];

/** The listed items of a reconciliation: a header, then a line for each. Items beyond the listed ones are in the JSON, by sender. */
export function reconcileCsv({ accounts, classes }: ReportJson): string {
  const tokens = new Map(accounts.map((account) => [`${account.network}/${account.asset}`, account]));
  const lines = allClasses.flatMap((name) => {
    const { kind, items } = classes[name] ?? { kind: '', items: [] };
    return items.map((item) => {
      const token = tokens.get(`${item.network}/${item.asset}`);
      return csvLine([name, kind, ...columns.map(([, of]) => String(of(item, token) ?? ''))]);
    });
  });
  return csvLine(['class', 'kind', ...columns.map(([name]) => name)]) + lines.join('');
}

function amountText(atoms: string | undefined, token: Token): string | undefined {
  return atoms === undefined || token?.decimals == null
    ? undefined
    : decimalText(BigInt(atoms), token.decimals);
}
