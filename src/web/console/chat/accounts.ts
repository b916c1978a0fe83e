import { html, type Html } from '../../../base/values/html.ts';
import { type Account, findAccount, listAccounts } from '../../../accounts/store/credit.ts';
import { pathWith } from '../../pages/own-path.ts';
import { amount, type Column, empty, table } from '../../pages/parts.ts';
import type { Answer, View } from '../../pages/site.ts';
import { cursorOf } from '../cursor.ts';
import type { Console, OperatorVisit } from '../site.ts';
import { accountAction, accountView } from './account.ts';
import { contextOf } from './chat-context.ts';

export const accountsPath = '/console/chat/accounts';
const shownRows = 50;

/** Accounts of credit: a list, and a page of each. */
export function accountPages(console: Console): void {
  console.show(accountsPath, listOrOne);
  console.show(`${accountsPath}/:account`, (visit) => accountView(visit));
  accountAction(console);
}

async function listOrOne(visit: OperatorVisit): Promise<Answer> {
  const { db } = contextOf(visit);
  const name = (visit.query.get('q') ?? '').trim();
  if (name === '') return listView(visit);
  const account = await findAccount(db, { name });
  if (account) return { kind: 'redirect', to: `${accountsPath}/${account.accountId}` };
  return view(visit, empty('No such account', 'An account is found by its whole name.'));
}

async function listView(visit: OperatorVisit): Promise<View> {
  const { db, settings } = contextOf(visit);
  const after = cursorOf(visit.query, 'after');
  const accounts = await listAccounts(db, { after: after ?? 0, limit: shownRows + 1 });
  const shown = accounts.slice(0, shownRows);
  const next = accounts.length > shownRows ? shown.at(-1)?.accountId : undefined;
  const list =
    shown.length === 0
      ? empty('No accounts', 'An account is opened with its first key, or by its user.')
      : html`<section class="sheet" data-rows>
          ${table('Accounts, the oldest first', columnsFor(settings.currency), shown)}
        </section>`;
  return view(
    visit,
    html`${list}
      <p class="actions">
        ${after !== undefined && html`<a class="button plain" href="${accountsPath}">The oldest</a>`}
        ${next !== undefined && html`<a class="button plain" href="${pathWith(accountsPath, { after: String(next) })}">Newer</a>`}
      </p>`,
  );
}

function view({ query }: OperatorVisit, body: Html): View {
  return {
    kind: 'view',
    title: 'Accounts',
    section: '/console/chat',
    body: html`<p><a href="/console/chat">Chat</a></p>
      <div class="head"><h1>Accounts</h1></div>
      <form method="get" action="${accountsPath}" class="filters" role="search">
        <div class="field wide">
          <label for="q">Name</label>
          <input
            id="q"
            name="q"
            type="search"
            value="${query.get('q') ?? ''}"
            maxlength="128"
            data-search
            autocomplete="off"
          />
        </div>
        <button>Search</button>
      </form>
      ${body}`,
  };
}

function columnsFor(currency: string): Column<Account>[] {
  const money = (label: string, micros: (account: Account) => number): Column<Account> => ({
    label,
    isNumber: true,
    cell: (account) => amount(BigInt(micros(account)), currency),
  });
  return [
    {
      label: 'Account',
      cell: ({ accountId, name }) => html`<a class="said" href="${accountsPath}/${accountId}">${name}</a>`,
    },
    money('Balance', ({ balanceMicros }) => balanceMicros),
    money('Held', ({ heldMicros }) => heldMicros),
    money('Used', ({ usedMicros }) => usedMicros),
  ];
}
