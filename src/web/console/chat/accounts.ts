import { cursorOf, pageLinks, pageRows, searchField, tableSheet } from '../tables.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { type Account, findAccount, listAccounts } from '../../../accounts/store/credit.ts';
import {
  amount,
  creditDigits,
  type Column,
  empty,
  badge,
  field,
  form,
  personName,
  time,
  factList,
} from '../../pages/elements.ts';
import type { Answer, View } from '../../pages/visit.ts';
import type { Console, OperatorVisit } from '../visit.ts';
import { chatOf } from '../contexts.ts';
import type { RecordedEvent } from '../../../ledger/rules/event.ts';
import { parseCredit } from '../../../base/values/price.ts';
import { includesRole } from '../../../base/values/operator-role.ts';
import { operatorTextPattern } from '../../../base/values/operator-words.ts';
import { accountStream, grantCredit } from '../../../accounts/use-cases/credit/credit.ts';
import {
  accountNameOf,
  findUser,
  findUserIds,
  type User,
  userOfAccount,
} from '../../../accounts/store/identity.ts';
import { type ApiKey, listKeysOf } from '../../../accounts/store/api-keys.ts';
import { readLatestEvents } from '../../../ledger/store/streams.ts';
import { sectionView } from '../layout.ts';
import { problemView } from '../../pages/problem.ts';

export const accountsPath = '/console/chat/accounts';
const shownRows = 50;

/** Accounts of credit: a list, and a page of each. */
export function accountPages(console: Console): void {
  console.show(accountsPath, listOrOne);
  console.show(`${accountsPath}/:account`, (visit) => accountView(visit));
  accountAction(console);
}

async function listOrOne(visit: OperatorVisit): Promise<Answer> {
  const who = (visit.query.get('q') ?? '').trim();
  if (who === '') return listView(visit);
  const found = await findAccounts(visit, who);
  const [account, another] = found;
  if (account && !another) return { kind: 'redirect', to: `${accountsPath}/${account.accountId}` };
  return view(
    visit,
    another
      ? await accountsTable(visit, 'Accounts', found)
      : empty(
          'No such account',
          'An account is found by its whole name, or by the whole e-mail address, wallet or id of its customer. A customer has one from the first sign-in on.',
        ),
  );
}

/** The account of this name, and those of the customers with this address. */
async function findAccounts(visit: OperatorVisit, who: string): Promise<readonly Account[]> {
  const { db, pool } = chatOf(visit);
  const users = await findUserIds(pool, who);
  return listAccounts(db, { names: [who, ...users.map(accountNameOf)] });
}

/** The customer to whom an account belongs; undefined if it is none of a customer, or the customer was erased. */
async function customerOf(visit: OperatorVisit, { name }: Account): Promise<User | undefined> {
  const userId = userOfAccount(name);
  return userId === undefined ? undefined : findUser(chatOf(visit).pool, userId);
}

async function accountsTable(
  visit: OperatorVisit,
  caption: string,
  accounts: readonly Account[],
): Promise<Html> {
  // one after the other: payments use the same connections
  const rows = await Array.fromAsync(accounts, async (account) => ({
    ...account,
    email: (await customerOf(visit, account))?.email,
  }));
  return tableSheet(caption, columnsFor(chatOf(visit).settings.currency, rows), rows);
}

async function listView(visit: OperatorVisit): Promise<View> {
  const { db } = chatOf(visit);
  const after = cursorOf(visit.query, 'after');
  const accounts = await listAccounts(db, { after: after ?? 0, limit: shownRows + 1 });
  const { shown, next } = pageRows(accounts, shownRows, ({ accountId }) => accountId);
  const list =
    shown.length === 0
      ? empty('No accounts', 'An account is opened with its first key, or by its user.')
      : await accountsTable(visit, 'Accounts, the oldest first', shown);
  return view(
    visit,
    html`${list}
    ${pageLinks(accountsPath, 'after', { isFirst: after === undefined, next }, ['The oldest', 'Newer'])}`,
  );
}

function view({ query }: OperatorVisit, body: Html): View {
  const search = html`<form method="get" action="${accountsPath}" class="filters" role="search">
    ${searchField('Find a customer', query.get('q'), { maxLength: 254, hint: 'E-mail address, wallet, or the name of the account' })}
    <button>Search</button>
  </form>`;
  return sectionView('/console/chat', 'Accounts', [search, body], { up: ['/console/chat', 'Chat'] });
}

type ListedAccount = Account & { readonly email: string | undefined };

function columnsFor(currency: string, rows: readonly ListedAccount[]): Column<ListedAccount>[] {
  const money = (label: string, micros: (account: Account) => number): Column<ListedAccount> => {
    const digits = creditDigits(rows.map((account) => BigInt(micros(account))));
    return {
      label,
      isNumber: true,
      cell: (account) => amount(BigInt(micros(account)), currency, { digits }),
    };
  };
  return [
    {
      label: 'Account',
      cell: ({ accountId, name, email }) =>
        html`<a href="${accountsPath}/${accountId}">${personName(email ?? name)}</a>${
            email !== undefined && html`<span class="line hint">${name}</span>`
          }`,
    },
    money('Balance', ({ balanceMicros }) => balanceMicros),
    money('Held', ({ heldMicros }) => heldMicros),
    money('Used', ({ usedMicros }) => usedMicros),
  ];
}

const shownKeys = 100;
const shownMoves = 50;

/** Grants credit, with a reason, under the operator's name. */
function accountAction(console: Console): void {
  console.act(
    `${accountsPath}/:account/grant`,
    {
      role: 'finance',
      action: 'grant_credit',
      shownAt: accountsPath,
      subject: ({ params }) => `account ${params['account'] ?? ''}`,
    },
    async (visit, { fields, form: token }) => {
      const context = chatOf(visit);
      const account = await findShown(visit);
      if (!account) return noAccount();
      const micros = parseCredit(fields.get('amount')?.trim() ?? '');
      const why = fields.get('why')?.trim() ?? '';
      if (micros === undefined || micros <= 0n) return accountView(visit, { fields, text: amountMistake });
      if (!operatorTextPattern.test(why)) return accountView(visit, { fields, text: whyMistake });
      const { kind } = await grantCredit(context, account.accountId, micros, {
        by: { operator: visit.operator.name, why },
        // a form that is sent twice grants once
        requestId: token.id,
        currency: context.settings.currency,
      });
      if (kind !== 'moved') return accountView(visit, { fields, text: moveMistakes[kind] });
      return { kind: 'redirect', to: `${accountsPath}/${account.accountId}`, notice: 'credit_granted' };
    },
  );
}

const amountMistake = 'An amount is above zero, with at most six decimals. Nothing was granted.';
const whyMistake =
  'Why it is granted is kept for ever: 1 to 200 visible ASCII characters, without "@". Nothing was granted.';
const moveMistakes = {
  not_allowed: 'The balance would be above the maximum. Nothing was granted.',
  request_id_taken: 'This form has granted another amount already. Nothing more was granted.',
} as const;

interface Mistake {
  readonly fields: URLSearchParams;
  readonly text: string;
}

function findShown(visit: OperatorVisit): Promise<Account | undefined> {
  const accountId = cursorOf(new URLSearchParams(visit.params), 'account') ?? 0;
  return findAccount(chatOf(visit).db, { accountId });
}

function noAccount(): View {
  return problemView(404, 'There is no such account.', { title: 'Not found' });
}

/** One account: its credit, its keys, and every move of credit outside completions. */
async function accountView(visit: OperatorVisit, mistake?: Mistake): Promise<View> {
  const { db, pool, settings } = chatOf(visit);
  const account = await findShown(visit);
  if (!account) return noAccount();
  const { accountId, name } = account;
  const before = cursorOf(visit.query, 'before');
  const [valid, revoked, moves] = await Promise.all([
    listKeysOf(db, accountId, { isRevoked: false, limit: shownKeys }),
    listKeysOf(db, accountId, { isRevoked: true, limit: shownKeys }),
    readLatestEvents(pool, accountStream(accountId), shownMoves + 1, before),
  ]);
  const { shown, next } = pageRows(moves, shownMoves, ({ version }) => version);
  const path = `${accountsPath}/${accountId}`;
  const customer = await customerOf(visit, account);
  const body = html`${creditNotice(account, settings.currency, [...valid, ...revoked])}
  ${creditSheet(account, settings.currency, customer)}
  ${includesRole(visit.operator.role, 'finance') && grantForm(visit, accountId, mistake?.fields)}
  ${tableSheet('Keys', keyColumns(settings.currency), [...valid, ...revoked], { none: ['Keys', 'It has no keys.'] })}
  ${tableSheet('Changes of the credit', moveColumns(settings.currency), shown)}
  ${pageLinks(path, 'before', { isFirst: before === undefined, next }, ['The latest', 'Earlier'])}`;
  return sectionView('/console/chat', `Account ${name}`, body, {
    up: [accountsPath, 'Accounts'],
    heading: html`<span class="name">${customer ? personName(customer.email) : name}</span>`,
    mistake: mistake?.text,
  });
}

/** What the account can spend now, and with how many keys. */
function creditNotice(
  { balanceMicros, heldMicros }: Account,
  currency: string,
  keys: readonly ApiKey[],
): Html {
  const working = keys.filter((key) => !key.isDisabled && isValid(key)).length;
  const money = amount(BigInt(balanceMicros), currency);
  const held = heldMicros > 0 && html`, besides ${amount(BigInt(heldMicros), currency)} held for completions`;
  return balanceMicros <= 0
    ? html`<p class="notice warn">
        It has no credit to spend: its requests for models that cost are refused.
      </p>`
    : html`<p class="notice ${working === 0 ? 'warn' : 'plain'}">
        It has ${money} of credit${held}. ${spendersOf(working)}
      </p>`;
}

function spendersOf(validKeys: number): string {
  if (validKeys === 0) return 'No key can spend it: none of its keys is valid.';
  return validKeys === 1
    ? '1 key may spend it, up to the limits of the key.'
    : `${validKeys} keys may spend it, each up to its limits.`;
}

function creditSheet(
  { name, heldMicros, usedMicros }: Account,
  currency: string,
  customer: User | undefined,
): Html {
  const facts = [
    ['Held for completions under way', heldMicros],
    ['Used', usedMicros],
  ] as const;
  return html`<section class="sheet">
    <h2>The account</h2>
    ${factList([
      customer && ['Customer', html`${personName(customer.name)}, since ${time(customer.createdAt)}`],
      customer && ['Name of the account', html`<span class="name">${name}</span>`],
      ...facts.map(([label, micros]) => [label, amount(BigInt(micros), currency)] as const),
    ])}
  </section>`;
}

function grantForm(visit: OperatorVisit, accountId: number, typed: URLSearchParams | undefined): Html {
  const fields = html`${field({ label: `Amount in ${chatOf(visit).settings.currency}`, name: 'amount', value: typed?.get('amount'), maxLength: 20, inputMode: 'decimal', autocomplete: 'off' })}
    ${field({ label: 'Why', name: 'why', value: typed?.get('why'), maxLength: 200, autocomplete: 'off', hint: 'Recorded with your name, for ever.' })}
    <button data-confirm="Press again: grant it">Grant credit</button>`;
  return html`<section class="sheet">
    <h2>Grant credit</h2>
    ${form(visit, `${accountsPath}/${accountId}/grant`, fields)}
  </section>`;
}

function keyColumns(currency: string): Column<ApiKey>[] {
  return [
    {
      label: 'Key',
      cell: ({ keyId, name }) => html`${personName(name)} <span class="hint">key ${keyId}</span>`,
    },
    { label: 'State', cell: stateOf },
    {
      label: 'Spent in all',
      isNumber: true,
      cell: ({ spentMicros, capMicros }) =>
        html`${amount(BigInt(spentMicros), currency)}
          <span class="line hint"
            >${capMicros === undefined ? 'no limit' : html`of at most ${amount(BigInt(capMicros), currency)}`}</span
          >`,
    },
    {
      label: 'Spent in its period',
      isNumber: true,
      cell: ({ budget }) =>
        budget
          ? html`${amount(BigInt(budget.spentMicros), currency)}
              <span class="line hint"
                >of at most ${amount(BigInt(budget.micros), currency)} a ${budget.period}</span
              >`
          : html`<span class="muted">no budget</span>`,
    },
    { label: 'Models', cell: ({ models }) => models?.join(', ') ?? 'all' },
    { label: 'Last used', cell: ({ lastUsedAt }) => (lastUsedAt ? time(lastUsedAt) : 'never') },
  ];
}

function isValid({ revokedAt, expiresAt }: ApiKey): boolean {
  return revokedAt === undefined && (expiresAt === undefined || expiresAt >= new Date());
}

function stateOf({ revokedAt, expiresAt, isDisabled }: ApiKey): Html {
  if (revokedAt) return badge('revoked');
  if (isDisabled) return badge('user disabled', 'bad');
  if (!expiresAt) return badge('valid', 'good');
  return html`${badge(expiresAt < new Date() ? 'expired' : 'valid', expiresAt < new Date() ? 'plain' : 'good')}
    <span class="line hint">until ${time(expiresAt)}</span>`;
}

function moveColumns(currency: string): Column<RecordedEvent>[] {
  return [
    { label: 'When', cell: ({ at }) => time(new Date(at)) },
    { label: 'What', cell: ({ type }) => type.replace(/^credit_/, '').replaceAll('_', ' ') },
    {
      label: 'Amount',
      isNumber: true,
      cell: ({ data }) =>
        'amount_micros' in data && typeof data.amount_micros === 'string'
          ? amount(BigInt(data.amount_micros), currency)
          : '',
    },
    {
      label: 'By',
      cell({ data }) {
        if ('operator' in data && typeof data.operator === 'string') return data.operator;
        return 'token_id' in data && data.token_id !== undefined ? html`token ${data.token_id}` : '';
      },
    },
    { label: 'Why', cell: ({ data }) => ('why' in data && typeof data.why === 'string' ? data.why : '') },
    { label: 'Event', isNumber: true, cell: ({ seq }) => seq },
  ];
}
