import { parseAddress } from '../../../base/values/primitives.ts';
import { html, type Html } from '../../../base/values/html.ts';
import type { ModelConfig } from '../../../base/config/config.ts';
import type { ChatContext } from '../../../chat/use-cases/context.ts';
import { listUserApiKeys } from '../../../accounts/use-cases/user-api-keys.ts';
import { findAccount } from '../../../accounts/store/credit.ts';
import { snippetsFor } from '../keys/snippets.ts';
import { amount, type Column, count, empty, personName, table } from '../elements.ts';
import { type Offers, offerSections, offersOf } from './offers.ts';
import { modelColumns } from '../model-columns.ts';
import { pathWith } from '../own-path.ts';
import type { Pages } from '../serve.ts';
import type { SignedInVisit, View, Visit } from '../visit.ts';

/** The first page: the jobs and models on sale, and for users the state of their account. */
export function homePages(pages: Pages): void {
  pages.show('/', async (visit) => {
    const { visitor } = visit;
    return visitor ? overview({ ...visit, visitor }) : welcome(visit);
  });
}

/** What the account has, where models are sold: credit and keys; then what is on sale. */
async function overview(visit: SignedInVisit): Promise<View> {
  const { site, visitor } = visit;
  const chat = site.chat?.();
  const { name } = visitor.user;
  // who signed up with a wallet is called by its address, which is too long for a heading
  const who = parseAddress(name) ? '' : html`, ${personName(name)}`;
  const body = html`<div class="head"><h1>Welcome${who}</h1></div>
    ${chat ? await accountState(chat, visit) : paidCalls}
    ${offerSections(visit, { ...offersOf(visit), models: [] })}
    ${chat && modelsTable([...chat.models.values()], chat.settings.currency)}`;
  return { kind: 'view', title: site.settings.name, section: 'home', body };
}

const paidCalls = html`<section class="sheet">
  <h2>Your paid calls</h2>
  <p>
    A wallet pays for each call, so your account needs no credit. The page
    <a href="/jobs/receipts">Receipts</a> has the calls that your wallets paid for, with their results.
  </p>
  <p class="actions">
    <a class="button" href="/jobs">Buy a job</a><a href="/account">Add a wallet to your account</a>
  </p>
</section>`;

async function accountState(context: ChatContext, { visitor, site }: SignedInVisit): Promise<Html> {
  const { currency } = context.settings;
  const account = await findAccount(context.db, { accountId: visitor.accountId });
  const keys = (await listUserApiKeys(context, visitor)).filter(({ revokedAt }) => !revokedAt);
  const micros = (size: number | undefined): Html => amount(BigInt(size ?? 0), currency);
  const [model] = context.models.values();
  return html`<div class="grid">
      <div class="sheet figure">
        <span class="label">You can spend</span>${micros(account?.balanceMicros)}<a href="/credit"
          >Credit and its history</a
        >
      </div>
      <div class="sheet figure">
        <span class="label">Used so far</span>${micros(account?.usedMicros)}<a href="/usage"
          >By day, model and key</a
        >
      </div>
      <div class="sheet figure">
        <span class="label">Keys</span>${count(keys.length)}<a href="/keys">Your keys</a>
      </div>
    </div>
    ${
      keys.length === 0
        ? empty(
            'Make your first key',
            'A key lets a program use the models with your credit.',
            html`<a class="button" href="/keys/new">Make a key</a>`,
          )
        : html`<section class="sheet">
            <h2>Ask a model</h2>
            <p class="hint">With the key in the variable <code>TOLLBOOK_KEY</code>.</p>
            ${model && snippetsFor(site.publicUrl(), model.name)}
          </section>`
    }`;
}

function welcome(visit: Visit): View {
  const { settings } = visit.site;
  const offers = offersOf(visit);
  const hasModels = offers.models.length > 0;
  const hasCalls = offers.jobs.length > 0 || offers.routes.length > 0;
  const body = html`<div class="hero">
      <h1>${headline(offers)}</h1>
      <p class="lead">
        ${hasCalls && `${hasModels ? 'Jobs and paid APIs: a' : 'A'} wallet pays for each call, without an account. What is refused is never charged. `}
        ${hasModels && `All models answer at one address that is compatible with OpenAI’s API. You sign up, pay from a balance, and see what each request cost.`}
      </p>
      <p class="actions">
        ${hasCalls && html`<a class="button" href="/jobs">Buy a job</a>`}${
          hasModels &&
          html`<a class="button ${hasCalls && 'plain'}" href="/sign-up">Sign up</a
            ><a class="button plain" href="/try">Try a model</a>`
        }<a href="/docs">Read the API</a>
      </p>
    </div>
    ${offerSections(visit, offers)}`;
  return { kind: 'view', title: settings.name, body };
}

function headline({ jobs, routes, models }: Offers): string {
  if (models.length > 0)
    return jobs.length + routes.length > 0
      ? 'Jobs by the call, models by the token'
      : 'Models by the token, paid as you go';
  if (jobs.length === 0) return routes.length > 0 ? 'APIs, paid by the request' : 'Nothing is sold here yet';
  return routes.length > 0 ? 'Jobs and APIs, paid by the call' : 'Jobs, paid by the call';
}

function modelsTable(models: readonly ModelConfig[], currency: string): Html {
  const columns: Column<ModelConfig>[] = [
    {
      label: 'Model',
      cell: ({ name }) => html`<a href="${pathWith('/try', { model: name })}"><code>${name}</code></a>`,
    },
    ...modelColumns(currency, models),
  ];
  return html`<section class="sheet">${table('Models', columns, models)}</section>`;
}
