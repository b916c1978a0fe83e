import { html, type Html } from '../../../base/values/html.ts';
import { type Caip2, isHex32 } from '../../../base/values/primitives.ts';
import type { NoTransfers } from '../../../finance/use-cases/refunds/final-transfers.ts';
import { recordSweep, type SweepRefusal } from '../../../finance/use-cases/refunds/record-sweep.ts';
import {
  recordUnexplainedTransfer,
  type UnexplainedTransferOrder,
  type UnexplainedTransferRefusal,
} from '../../../finance/use-cases/refunds/record-unexplained-transfer.ts';
import { field, form, hidden, selectField } from '../../pages/elements.ts';
import type { Answer, View } from '../../pages/visit.ts';
import { jobsOf } from '../contexts.ts';
import type { Console, OperatorVisit } from '../visit.ts';
import { networkText } from '../../pages/known-networks.ts';

/** Why the transfers of a transaction could not be read. */
export const chainMistakes: Readonly<Record<NoTransfers, string>> = {
  network_unknown: 'The gateway has no RPC for this network.',
  wrong_chain: 'The RPC of this network serves another chain.',
  chain_unavailable: 'The chain could not be reached; try again.',
  transaction_unknown: 'The chain does not know this transaction.',
  transaction_failed: 'This transaction failed: it moved nothing.',
  not_final: 'This transaction is not final yet: try again in a while.',
};

const sweepMistakes: Readonly<Record<SweepRefusal, string>> = {
  ...chainMistakes,
  no_sweep: 'This transaction transfers nothing from an address that receives payments.',
  refund_due:
    'It is to a payer to whom at least as much is due as a refund: record it on the page of that refund, or tick below that it is not one.',
  transfer_claimed: 'All its transfers are already recorded for another purpose.',
};

const transferMistakes: Readonly<Record<UnexplainedTransferRefusal, string>> = {
  ...chainMistakes,
  no_transfer: 'This transaction transfers nothing to an address that receives payments.',
  transfer_ambiguous: 'Several of its transfers could be meant: name one by its log.',
  transfer_claimed: 'This transfer is already recorded for another purpose.',
  payment_known:
    'The authorization of a payment in the ledger moved it: the gateway records it, or it is resolved on the page of that payment.',
  from_payee: 'It comes from another address that receives payments: it is a sweep.',
  to_itself: 'It is from that address to itself: it is your own.',
  recorded_otherwise: 'It is recorded otherwise. The command tollbook transfers reverse takes that back.',
  no_return: 'The other transaction has no transfer of the whole amount to its sender.',
  returned_before: 'The other transfer is older than the money that it should have given back.',
  superseded: 'Something else was recorded at the same moment; try again.',
};

/** What money is that no payment explains: what came, or what left for another account of the operator. */
export const came = ['suspense', 'income', 'own', 'returned'] as const;
export const moneyKinds = ['sweep', ...came] as const;
const kindTexts: Readonly<Record<(typeof moneyKinds)[number], string>> = {
  sweep: 'a sweep to an account of yours',
  suspense: 'money of an owner not known yet',
  income: 'income that you keep',
  own: 'your own money',
  returned: 'money that was given back',
};

interface MoneyPage {
  /** The form leads below it, and what is recorded leads back to it. */
  readonly path: string;
  readonly pageOf: (params: OperatorVisit['params']) => string;
  readonly show: (visit: OperatorVisit, mistake: string, typed: URLSearchParams) => Promise<View>;
}

/** Records a sweep, or a transfer that no payment explains, as the commands do: for a page with `moneyForm`. */
export function moneyAction(console: Console, { path, pageOf, show }: MoneyPage): void {
  const options = { role: 'finance', action: 'record_transfer', shownAt: pageOf, subject } as const;
  console.act(`${path}/record`, options, async (visit, { fields }): Promise<Answer> => {
    const recorded = await record(visit, fields);
    if (typeof recorded === 'string') return show(visit, `${recorded} Nothing was recorded.`, fields);
    if (recorded.skipped > 0)
      return show(
        visit,
        `Of its transfers, ${recorded.skipped} are on record for another purpose already; the others are recorded now.`,
        fields,
      );
    return { kind: 'redirect', to: pageOf(visit.params), notice: 'transfer_recorded' };
  });
}

function subject(_: OperatorVisit, fields: URLSearchParams): string | undefined {
  return fields.get('transaction')?.trim();
}

/** Why nothing was recorded, or how many transfers of the transaction had another purpose before. */
async function record(
  visit: OperatorVisit,
  fields: URLSearchParams,
): Promise<string | { readonly skipped: number }> {
  const { chains, settings } = jobsOf(visit);
  const sent = sentIn(visit, fields);
  if (!sent) return transactionMistake;
  if (fields.get('what') === 'sweep') {
    const order = { ...sent, isNoRefund: fields.get('no_refund') === 'yes' };
    const answer = await recordSweep(visit.site.ledger, order, chains, settings.acceptedTokens);
    return answer.kind === 'refused' ? sweepMistakes[answer.code] : { skipped: answer.skipped.length };
  }
  if (!came.some((one) => one === fields.get('what'))) return 'Choose what the transfer is.';
  const use = useIn(fields);
  if (!use) return 'What gave the money back is a transaction: 0x and 64 hexadecimal digits.';
  const log = fields.get('log')?.trim() ?? '';
  if (!/^\d{0,9}$/.test(log)) return 'A log is a whole number from 0.';
  const order = { ...sent, use, logIndex: log === '' ? undefined : Number(log) };
  const answer = await recordUnexplainedTransfer(visit.site.ledger, order, chains, settings.acceptedTokens);
  return answer.kind === 'refused' ? transferMistakes[answer.code] : { skipped: 0 };
}

const transactionMistake =
  'A transaction is 0x and 64 hexadecimal digits, on a network of the configuration.';

function sentIn(visit: OperatorVisit, fields: URLSearchParams) {
  const transaction = fields.get('transaction')?.trim().toLowerCase() ?? '';
  const network = networksOf(visit).find((one) => one === fields.get('network'));
  return network && isHex32(transaction)
    ? { network, transaction, operator: visit.operator.name }
    : undefined;
}

function useIn(fields: URLSearchParams): UnexplainedTransferOrder['use'] | undefined {
  const as = came.find((one) => one === fields.get('what'));
  if (as !== 'returned') return as && { as };
  const by = fields.get('by')?.trim().toLowerCase() ?? '';
  return isHex32(by) ? { as, by } : undefined;
}

function networksOf(visit: OperatorVisit): readonly Caip2[] {
  return [...jobsOf(visit).settings.networks.keys()];
}

interface MoneyForm {
  /** What it may be. */
  readonly kinds: readonly (typeof moneyKinds)[number][];
  /** What the page knows of the transfer already. */
  readonly given?: Record<'network' | 'transaction', string>;
  readonly typed: URLSearchParams | undefined;
  /** Why nothing was recorded of what was typed. */
  readonly mistake?: string | undefined;
  /** The first choice, which is none. */
  readonly any?: string;
}

export function moneyForm(
  visit: OperatorVisit,
  page: string,
  { kinds, given, typed, ...more }: MoneyForm,
): Html {
  const networks = networksOf(visit);
  const value = (name: string): string | null | undefined => typed?.get(name);
  const texts = Object.fromEntries(networks.map((network) => [network, networkText(network)]));
  const hash = { maxLength: 66, autocomplete: 'off' } as const;
  const where = given
    ? hidden(given)
    : [
        selectField({ label: 'Network', name: 'network', values: networks, value: value('network'), texts }),
        field({
          ...hash,
          label: 'Transaction',
          name: 'transaction',
          value: value('transaction'),
          hint: '0x and 64 digits. Its block must be final.',
        }),
      ];
  // the stylesheet shows what the chosen kind needs
  const ofSweep =
    more.mistake?.startsWith(sweepMistakes.refund_due) === true &&
    html`<div class="choices one field of-sweep">
      <label
        ><input type="checkbox" name="no_refund" value="yes" />
        <span>This is not the refund that is due to its recipient</span></label
      >
    </div>`;
  const ofTransfer = html`<div class="of-returned">
      ${field({
        ...hash,
        label: 'Given back by',
        name: 'by',
        value: value('by'),
        isOptional: true,
        hint: 'The transaction that gave it back. Money that was given back needs it.',
      })}
    </div>
    <div class="of-transfer">
      ${field({
        label: 'Log index',
        name: 'log',
        value: value('log'),
        maxLength: 9,
        isOptional: true,
        autocomplete: 'off',
        inputMode: 'numeric',
        hint: 'Which transfer of the transaction, if it has several to you.',
      })}
    </div>`;
  return form(
    visit,
    `${page}/record`,
    html`${where}
      ${selectField({ label: 'What it is', name: 'what', values: kinds, value: value('what'), texts: kindTexts, ...(more.any !== undefined && { any: more.any }) })}
      ${kinds.some((kind) => kind !== 'sweep') && ofTransfer} ${kinds.includes('sweep') && ofSweep}
      <button data-confirm="Press again: record it">Record the transfer</button>`,
  );
}
