import { html, type Html } from '../../../base/values/html.ts';
import type { ModelConfig } from '../../../base/config/config.ts';
import { listUserApiKeys } from '../../../accounts/use-cases/user-api-keys.ts';
import { findAccount } from '../../../accounts/store/credit.ts';
import { snippetsFor } from '../keys/snippets.ts';
import { amount, type Column, count, empty, personName, table } from '../elements.ts';
import { offerSections, offersOf } from './offers.ts';
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

async function overview(visit: SignedInVisit): Promise<View> {
  const context = visit.site.chat();
  const { currency } = context.settings;
  const account = await findAccount(context.db, { accountId: visit.visitor.accountId });
  const keys = (await listUserApiKeys(context, visit.visitor)).filter(({ revokedAt }) => !revokedAt);
  const micros = (size: number | undefined): Html => amount(BigInt(size ?? 0), currency);
  const [model] = context.models.values();
  const body = html`<div class="head"><h1>Welcome, ${personName(visit.visitor.user.name)}</h1></div>
    <div class="grid">
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
            ${model && snippetsFor(visit.site.publicUrl(), model.name)}
          </section>`
    }
    ${modelsTable([...context.models.values()], currency)}`;
  return { kind: 'view', title: visit.site.settings.name, section: 'home', body };
}

function welcome(visit: Visit): View {
  const { settings } = visit.site;
  const offers = offersOf(visit);
  const hasModels = offers.models.length > 0;
  const hasCalls = offers.jobs.length > 0 || offers.routes.length > 0;
  const body = html`<div class="hero">
      <h1>
        ${hasCalls ? (hasModels ? 'Jobs by the call, models by the token' : 'Jobs by the call') : 'Models by the token, paid as you go'}
      </h1>
      <p class="lead">
        ${hasCalls && 'A wallet pays for a job, without an account. '}
        ${hasModels && 'Models have one address, with the API that your tools know: pay from a balance, and see what each request cost.'}
      </p>
      <p class="actions">
        <a class="button" href="/sign-up">Sign up</a
        >${hasModels && html`<a class="button plain" href="/try">Try a model</a>`}${
          hasCalls && html`<a class="button plain" href="/jobs">Buy a job</a>`
        }<a href="/docs">Read the API</a>
      </p>
    </div>
    ${offerSections(visit, offers)}`;
  return { kind: 'view', title: settings.name, body };
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
