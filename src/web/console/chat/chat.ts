import { tableSheet } from '../tables.ts';
import { modelColumns } from '../../pages/model-columns.ts';
import { html, type Html } from '../../../base/values/html.ts';
import type { ChatContext } from '../../../chat/use-cases/context.ts';
import type { ModelConfig } from '../../../base/config/models.ts';
import { badge, type Column, count, shortId, time, factList } from '../../pages/elements.ts';
import { noticeOf } from '../../pages/document.ts';
import type { View } from '../../pages/visit.ts';
import { sectionView } from '../layout.ts';
import type { OperatorVisit, Section } from '../visit.ts';
import { accountPages, accountsPath } from './accounts.ts';
import { chatOf } from '../contexts.ts';
import { listTroubledPayouts, type OpenPayout } from '../../../chat/store/payouts.ts';
import { readStream } from '../../../ledger/store/streams.ts';

const path = '/console/chat';

/** Models, their upstreams, and the credit that pays for them. */
export const chatSection: Section = {
  path,
  label: 'Chat',
  isOffered: ({ chat }) => chat !== undefined,
  register(console) {
    console.show(path, chatView);
    accountPages(console);
  },
};

async function chatView(visit: OperatorVisit): Promise<View> {
  const context = chatOf(visit);
  const body = html`${upstreamsNotice(context)}
  ${tableSheet('Models', columnsFor(context), [...context.models.values()], {
    note: html`<p class="hint">Upstreams as this process of the gateway sees them.</p>`,
  })}
  ${await spendsSheet(context)} ${limitsSheet(context)}`;
  const beside = html`<a class="button plain" href="${accountsPath}">Accounts</a>`;
  return sectionView(path, 'Chat', body, { beside });
}

/** Whether this process gets answers for every model. */
function upstreamsNotice({ models, health }: ChatContext): Html | false {
  const fails = ({ upstream, model }: ModelConfig['targets'][number]): boolean =>
    health.circuitOf({ name: upstream, model }) === 'open';
  const all = [...models.values()];
  const failing = all.filter(({ targets }) => targets.every(fails));
  if (models.size === 0) return false;
  return failing.length === 0
    ? noticeOf(
        all.some(({ targets }) => targets.some(fails))
          ? { tone: 'warn', text: 'An upstream fails; every model has another one.' }
          : { tone: 'good', text: 'No upstream fails at present.' },
      )
    : noticeOf({
        tone: 'bad',
        text: `No upstream answers for ${failing.map(({ name }) => name).join(', ')}.`,
      });
}

const circuitTones = { closed: 'good', probing: 'warn', open: 'bad' } as const;

function columnsFor({ health, settings }: ChatContext): Column<ModelConfig>[] {
  return [
    { label: 'Model', cell: ({ name }) => html`<code>${name}</code>` },
    ...modelColumns(settings.currency),
    {
      label: 'Upstreams',
      cell: ({ targets }) =>
        targets.map(({ upstream, model }) => {
          const circuit = health.circuitOf({ name: upstream, model });
          const text = circuit === 'closed' ? 'no failures' : circuit === 'open' ? 'fails' : 'tried again';
          return html`<span class="line">${upstream} ${badge(text, circuitTones[circuit])}</span>`;
        }),
    },
  ];
}

function limitsSheet({ settings }: ChatContext): Html {
  const limits: readonly (readonly [string, number | undefined])[] = [
    ['One key, requests a minute', settings.keyPerMinute],
    ['One session, requests a minute', settings.sessionPerMinute],
    ['One account, requests a minute', settings.accountPerMinute],
    ['One spend authorization’s account, requests a minute', settings.spendAuthPerMinute],
    ['One address without credentials, requests a minute', settings.anonymousPerMinute],
    ['One address without credentials, requests a day', settings.anonymousPerDay],
    ['Free models, requests a day', settings.freePerDay],
    ['One address, refused requests a minute', settings.refusedPerMinute],
    ['One address, invalid credentials a minute', settings.failedAuthPerMinute],
    ['One client, requests at the same time', settings.maxConcurrentPerClient],
  ];
  return html`<section class="sheet">
    <h2>Limits of requests</h2>
    ${factList(limits.map(([name, most]) => [name, most === undefined ? 'no limit' : count(most)]))}
  </section>`;
}

const shownSpends = 50;

interface TroubledSpend extends OpenPayout {
  /** What was signed, in the token's smallest units; undefined if the ledger has no such event. */
  readonly amount: string | undefined;
  /** The account that signed it. */
  readonly commitment: string | undefined;
}

/** The earned spends whose claim on the contract has failed so far, or for good. */
async function spendsSheet({ pool, spending }: ChatContext): Promise<Html | undefined> {
  if (!spending) return undefined;
  const spends = await Promise.all(
    (await listTroubledPayouts(pool, shownSpends)).map(async (payout): Promise<TroubledSpend> => {
      const { events } = await readStream(pool, payout.stream);
      const accepted = events.find((event) => event.type === 'spend_accepted');
      return { ...payout, amount: accepted?.data.amount, commitment: accepted?.data.commitment };
    }),
  );
  return tableSheet('Spends whose claim has failed, the oldest first', columns, spends, {
    none: ['Spends', 'Every earned spend is claimed, or will be on time.'],
    note:
      spending.operatorBalance.isLow() &&
      html`<p>${badge('little ether', 'bad')} The operator’s key can hardly land and claim spends.</p>`,
  });
}

const columns: Column<TroubledSpend>[] = [
  { label: 'Spend', cell: ({ stream }) => shortId(stream, 'the name of the spend') },
  {
    label: 'State',
    cell: ({ status }) =>
      badge(status === 'failed' ? 'lost' : 'tried again', status === 'failed' ? 'bad' : 'warn'),
  },
  { label: 'Reason', cell: ({ reason = '' }) => reason.replaceAll('_', ' ') },
  { label: 'Amount, in smallest units', isNumber: true, cell: ({ amount = '' }) => amount },
  {
    label: 'Account',
    cell: ({ commitment }) => (commitment === undefined ? '' : shortId(commitment, 'the account')),
  },
  { label: 'Attempts', isNumber: true, cell: ({ attempts }) => attempts },
  { label: 'Earned', cell: ({ since }) => time(since) },
];
