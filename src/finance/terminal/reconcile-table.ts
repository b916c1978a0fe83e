import { bridgeReasonTexts } from '../rules/reconcile/bridge.ts';
import type { AccountJson, ReportJson } from '../rules/reconcile/report.ts';
import type { ClassJson, GroupJson, ItemFields } from '../rules/reconcile/tally.ts';
import type { BridgeLineJson } from '../rules/reconcile/bridge-json.ts';
import { allClasses } from '../rules/reconcile/reconcile.ts';
import { decimalText } from '../../base/values/entry.ts';
import { countOf } from '../../base/values/count-text.ts';

/** Items of a class that a person is shown; the JSON has them all. */
const mostShown = 20;
/** Of the id of a break: enough to name it. */
const shownDigits = 18;

type BridgeItem = BridgeLineJson['items'][number];
type NetworkJson = ReportJson['networks'][number];
type Tokens = ReadonlyMap<string, Pick<AccountJson, 'symbol' | 'decimals'>>;

/** The lines that show a reconciliation to a person. */
export function reconcileLines(report: ReportJson): string[] {
  const { period, accounts, networks, classes, breaks, open_items } = report;
  const tokens = new Map(accounts.map((account) => [`${account.network}/${account.asset}`, account]));
  return [
    `Reconciliation from ${period.from} up to ${period.to}`,
    ...ledgerLines(report),
    ...networks.map(networkLine),
    ...accounts.flatMap(accountLines),
    ...allClasses.flatMap((name) => classLines(name, classes[name], tokens)),
    '',
    `${resultText(report)}: ${countOf(breaks, 'break')}${explainedText(report)}, ${countOf(open_items, 'open item')}`,
  ];
}

const resultTexts = {
  clean: 'Clean',
  open_items: 'No break, but some items are open',
  breaks: 'BREAKS',
} as const;

function resultText({ result, breaks, breaks_explained: explained }: ReportJson): string {
  return result === 'breaks' && breaks === explained ? 'Every break is explained' : resultTexts[result];
}

function explainedText({ breaks, breaks_explained: explained }: ReportJson): string {
  return explained > 0 && explained < breaks ? `, ${explained} of them explained` : '';
}

const completenessTexts = {
  balance: 'logs and balances agree',
  two_passes: 'every log was read twice; the node has no state to compare them with',
  sample: 'the node has no state to compare the logs with: --twice reads them again',
} as const;

function networkLine({ network, from_block, to_block, is_covered, completeness }: NetworkJson): string {
  const unfinished = is_covered ? '' : ' (the last final one; the period is not final yet)';
  return BigInt(to_block) < BigInt(from_block)
    ? `${network}: NO BLOCK of this chain is in the period${is_covered ? '' : ' yet'}`
    : `${network}: blocks ${from_block} to ${to_block}${unfinished}, ${completenessTexts[completeness]}`;
}

function ledgerLines({ ledger }: ReportJson): string[] {
  const sealed =
    ledger.checkpoint === null ? 'NOT SEALED: without a checkpoint, changes cannot be detected' : 'sealed';
  const { fault } = ledger;
  return [
    `ledger: ${ledger.size} events, root ${ledger.root}, ${sealed}`,
    ...(fault ? [`ledger: WRONG at event ${fault.seq}: ${fault.words}`] : []),
  ];
}

function accountLines(account: AccountJson): string[] {
  const { network, asset, pay_to, symbol, opening, movements, closing, ledger } = account;
  const amount = (atoms: string) => decimalText(BigInt(atoms), account.decimals ?? 0);
  const end = ({ atoms, how }: AccountJson['opening']) =>
    atoms === null ? 'unknown: no archive state' : `${amount(atoms)}${how === 'chain' ? '' : '  (computed)'}`;
  const beyond = ledger.difference_closing;
  const opened = ledger.difference_opening;
  return [
    '',
    `${symbol ?? asset} at ${pay_to} on ${network}`,
    row('opening', '', end(opening)),
    ...movements.flatMap(({ class: name, count, in: came, out }) => [
      ...(came === '0' && out !== '0' ? [] : [row(name, String(count), `+${amount(came)}`)]),
      ...(out === '0' ? [] : [row(name, String(count), `-${amount(out)}`)]),
    ]),
    row('closing', '', end(closing)),
    row('the ledger has', '', amount(ledger.closing)),
    ...(beyond === null || opened === null
      ? []
      : [row('the chain has beyond it', '', `${amount(beyond)}  (${amount(opened)} at the opening)`)]),
    ...bridgeLines(account, amount),
  ];
}

/** From the books' closing to the chain's, each item a line, so that nothing is left to be added up by hand. */
function bridgeLines({ bridge, closing }: AccountJson, amount: (atoms: string) => string): string[] {
  if (!bridge) return bridge === null ? ['  there are no books: the events contradict each other'] : [];
  const signed = (atoms: string) => (atoms.startsWith('-') ? amount(atoms) : `+${amount(atoms)}`);
  const optional = (name: string, atoms: string | null) =>
    atoms === null || atoms === '0' ? [] : [row(name, '', signed(atoms))];
  return [
    row('the books close with', '', amount(bridge.books)),
    ...optional('not confirmed yet', bridge.unconfirmed),
    ...optional('in the treasury', bridge.treasury),
    ...optional('at the opening', bridge.opening),
    ...bridge.lines.flatMap(({ reason, count, atoms, items }) => [
      row(bridgeReasonTexts[reason] ?? reason, String(count), signed(atoms)),
      ...items.slice(0, mostShown).map((item) => `    ${signed(item.atoms)}  ${bridgeItem(item)}`),
      ...(count > mostShown ? [`    and ${count - mostShown} more`] : []),
    ]),
    ...(closing.atoms === null ? [] : [row('so the chain has', '', amount(closing.atoms))]),
    ...(bridge.not_explained === null || bridge.not_explained === '0'
      ? []
      : [row('NOT EXPLAINED', '', signed(bridge.not_explained))]),
  ];
}

function bridgeItem({ of, quote_digest, seq, transaction, block_number }: BridgeItem): string {
  return [
    of,
    ...(quote_digest === undefined ? [] : [`quote ${quote_digest}`]),
    ...(seq === undefined ? [] : [`event ${seq}`]),
    ...(transaction === undefined ? [] : [`transaction ${transaction}`]),
    ...(block_number === undefined ? [] : [`block ${block_number}`]),
  ].join('  ');
}

function row(name: string, count: string, text: string): string {
  return `  ${name.padEnd(24)}${count.padStart(8)}  ${text}`;
}

function classLines(name: string, found: ClassJson | undefined, tokens: Tokens): string[] {
  if (!found || found.kind === 'ok') return [];
  const { kind, count, explained = 0, items, groups } = found;
  // those that no operator has explained come first
  const first = items.toSorted((a, b) => Number(Boolean(a.explained)) - Number(Boolean(b.explained)));
  const shown = first.slice(0, mostShown).map((item) => itemLine(item, tokens));
  const left = count - shown.length;
  return [
    '',
    `${kind === 'break' ? 'BREAK' : 'OPEN'} ${name}: ${count}${explained > 0 ? `, ${explained} explained` : ''}`,
    ...shown,
    ...(left > 0
      ? [`  and ${left} more, all in the JSON${groups.length > 0 ? '; beyond those listed, by sender:' : ''}`]
      : []),
    ...groups.slice(0, mostShown).map((group) => groupLine(group, tokens)),
  ];
}

function itemLine(item: ItemFields, tokens: Tokens): string {
  const { break_id: id, explained } = item;
  const name = id === undefined ? '' : `  break ${id.slice(0, shownDigits)}`;
  const said = explained
    ? `\n    explained as ${explained.as} by ${explained.operator}: ${explained.note}`
    : '';
  return itemText(item, tokens) + name + said;
}

function itemText(item: ItemFields, tokens: Tokens): string {
  const { ledger_amount, chain_amount, refunded_amount, quote_digest, seq, transaction, block_number, why } =
    item;
  if (item.of === 'token')
    return `  ${item.asset} on ${item.network}: ${item.decimals} decimals are configured, and the contract has ${item.chain_decimals ?? 'none'}`;
  const money = (atoms: string) => moneyText(item, atoms, tokens);
  const amounts = [
    ...(ledger_amount === undefined ? [] : [`ledger ${money(ledger_amount)}`]),
    ...(chain_amount === undefined ? [] : [`chain ${money(chain_amount)}`]),
    ...(refunded_amount === undefined ? [] : [`refunded ${money(refunded_amount)}`]),
  ];
  return [
    `  ${item.of} ${amounts.join(', ')}`,
    ...(quote_digest === undefined ? [] : [`quote ${quote_digest}`]),
    ...(seq === undefined ? [] : [`event ${seq}`]),
    ...(transaction === undefined ? [] : [`transaction ${transaction}`]),
    ...(block_number === undefined ? [] : [`block ${block_number}`]),
    ...(item.from === undefined ? [] : [`from ${item.from}`]),
    ...(item.to === undefined ? [] : [`to ${item.to}`]),
    ...(item.foreign === true ? ['by an authorization that is not of this ledger'] : []),
    ...(item.carried === true ? ['from an earlier period'] : []),
    ...(why === undefined ? [] : [why]),
  ].join('  ');
}

function groupLine(group: GroupJson, tokens: Tokens): string {
  return `  ${group.counterparty}: ${group.count} of ${moneyText(group, group.atoms, tokens)} together`;
}

function moneyText(
  of: { readonly network: string; readonly asset?: string | undefined },
  atoms: string,
  tokens: Tokens,
): string {
  const { symbol = null, decimals = null } = tokens.get(`${of.network}/${of.asset}`) ?? {};
  return `${decimalText(BigInt(atoms), decimals ?? 0)} ${symbol ?? of.asset ?? ''}`;
}
