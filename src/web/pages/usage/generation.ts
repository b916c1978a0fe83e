import type { ChatContext } from '../../../chat/use-cases/context.ts';
import { type Generation, readGeneration } from '../../../chat/use-cases/generation.ts';
import { exactCostText, parseCredit, parsePrice } from '../../../base/values/price.ts';
import { html, type Html, type Shown } from '../../../base/values/html.ts';
import { findApiKeyById } from '../../../accounts/store/api-keys.ts';
import type { Tone } from '../notices.ts';
import {
  amount,
  type Column,
  count,
  decimalsOf,
  digitsOf,
  factList,
  field,
  shortId,
  table,
  time,
} from '../elements.ts';
import type { Pages } from '../serve.ts';
import type { ChatVisit, View } from '../visit.ts';
import { keyName, modelName } from './view.ts';

/** One request by its id, as the API's `/v1/generation`. */
export function generationPage(pages: Pages<ChatVisit>): void {
  pages.showForUsers('/usage/generation', async ({ site, visitor, query }) => {
    const context = site.chat();
    const id = (query.get('id') ?? '').trim().toLowerCase();
    const generation = await readGeneration(context, visitor, id);
    if (!generation) return unknownView(id);
    const key =
      generation.key_id === null ? undefined : await keyOf(context, visitor.accountId, generation.key_id);
    return generationView(generation, key, context.settings.currency);
  });
}

/** @param mistake why there is nothing to show for this id */
export function generationForm(id: string, mistake?: string): Html {
  return html`<form method="get" action="/usage/generation" class="sheet">
    <h2>Find a request</h2>
    ${field({
      label: 'Request id',
      name: 'id',
      value: id,
      hint: html`The header <code>X-Request-Id</code> of the answer.`,
      error: mistake,
      maxLength: 60,
    })}
    <button class="plain">Look it up</button>
  </form>`;
}

/** Of another account or of nothing: the same answer. */
function unknownView(id: string): View {
  const body = html`<p><a href="/usage">Usage</a></p>
    <h1>No such request</h1>
    ${generationForm(id.slice(0, 60), 'Your account has no request with this id. Copy it again from the answer.')}`;
  return { kind: 'view', title: 'No such request', section: 'usage', isNarrow: true, body, status: 404 };
}

async function keyOf({ db }: ChatContext, accountId: number, keyId: number): Promise<Html | string> {
  const key = await findApiKeyById(db, keyId);
  const isOwn = key?.accountId === accountId;
  return keyName(isOwn ? { key_name: key.name } : undefined, keyId);
}

export const endings: Readonly<
  Record<Generation['status'], readonly [label: string, tone: Tone, meaning: string]>
> = {
  running: [
    'running',
    'plain',
    'It has not ended yet. Then what it does not cost of the amount held returns.',
  ],
  completed: ['answered', 'good', 'The whole answer was delivered.'],
  cut: [
    'cut short',
    'warn',
    'The upstream did not end its answer. The cost is that of the prompt and of what was delivered.',
  ],
  client_left: [
    'client left',
    'warn',
    'The client left before the end. The cost is that of the prompt and of what was written until then.',
  ],
  recovered: [
    'charged the amount held',
    'warn',
    'The gateway stopped before it recorded the cost, so the whole amount held was charged.',
  ],
  failed: ['failed', 'bad', 'Nothing was delivered, and nothing was charged.'],
};

/** As the page's first words. */
const headlines: Readonly<Record<Generation['status'], string>> = {
  running: 'is running',
  completed: 'was answered',
  cut: 'was answered in part',
  client_left: 'was stopped by its client',
  recovered: 'was charged the amount held',
  failed: 'failed, free of charge',
};

/** The ledger's values of a request, without those that it does not record. */
export function generationView(
  generation: Generation,
  key: Html | string | undefined,
  currency: string,
): View {
  const { id, model, upstream, status, reason, events } = generation;
  const [, , meaning] = endings[status];
  const amounts = [generation.cost, generation.held, generation.captured, generation.released];
  const digits = digitsOf(amounts.flatMap((text) => text ?? []));
  const credit = (text: string | null): Shown => {
    const micros = text === null ? undefined : parseCredit(text);
    return micros === undefined ? (text ?? undefined) : amount(micros, currency, { digits });
  };
  const {
    prompt_tokens: input,
    cached_tokens: cached,
    completion_tokens: output,
    latency_ms: all,
  } = generation;
  const isInTable = isCounted(generation);
  // what was captured is the cost, if both are known
  const isOverCharged = generation.captured !== generation.cost;
  const facts: Readonly<Record<string, Shown>> = {
    Cost: credit(generation.cost),
    'Held for it': generation.held !== null && credit(generation.held),
    Charged: isOverCharged && credit(generation.captured),
    'Given back': credit(generation.released),
    Model: modelName(model),
    // the table of the cost has them as well
    'Input tokens':
      !isInTable &&
      input !== null &&
      html`${count(input)}${cached !== null && cached > 0 && html`, ${count(cached)} of them cached`}`,
    'Output tokens': !isInTable && output !== null && count(output),
    Counted:
      generation.is_estimate === true && 'in part by the gateway: the upstream did not report all of it',
    Key: key ?? 'Sessions, without a key',
    Began: time(new Date(generation.created_at)),
    Took: all !== null && duration(all),
    'First byte after': duration(generation.first_byte_ms),
    Answer: generation.streamed ? 'streamed' : 'in one piece',
    Upstream: upstream !== null && modelName(upstream),
    Reason: reason !== null && html`<code>${reason}</code>`,
    Id: shortId(id, 'the id'),
  };
  const records: Column<Generation['events'][number]>[] = [
    { label: 'When', cell: ({ at }) => time(new Date(at)) },
    { label: 'What', cell: ({ type }) => type.replaceAll('_', ' ') },
    { label: 'Event', isNumber: true, cell: ({ seq }) => seq },
  ];
  const body = html`<p><a href="/usage">Usage</a> · <a href="/usage/requests">Requests</a></p>
    <div class="sheet">
      <h1>The request ${headlines[status]}</h1>
      <p>${meaning}</p>
      ${factList(Object.entries(facts))}
    </div>
    ${costSection(generation, currency)}
    <details class="sheet">
      <summary>In the ledger</summary>
      ${table('Its events', records, events)}
      <p class="hint">In a sealed ledger <code>/log/proof?seq=EVENT</code> proves each of them.</p>
    </details>`;
  return { kind: 'view', title: 'Request', section: 'usage', body };
}

/** Whether the table of its cost says how many tokens it had. */
function isCounted({ price, status, prompt_tokens: input, completion_tokens: output }: Generation): boolean {
  return Boolean(price) && input !== null && output !== null && status !== 'recovered';
}

/** One kind of its tokens, and their cost. */
interface CostLine {
  readonly label: string;
  readonly tokens: number;
  readonly price: string;
}

/** How the cost follows from the tokens and their prices; nothing if the ledger does not say one of them. */
function costSection(generation: Generation, currency: string): Html | undefined {
  const { price, cost, prompt_tokens: input, completion_tokens: output } = generation;
  if (!price) return undefined;
  const unit = html` <span class="unit">${currency}</span>`;
  const prices: Column<CostLine> = {
    label: 'Price of a million',
    isNumber: true,
    cell: (line) => html`${decimalsOf(line.price, priceDigits)}${unit}`,
  };
  const label: Column<CostLine> = { label: 'Tokens', cell: (line) => line.label };
  const hasCounts = isCounted(generation);
  const cached = generation.cached_tokens ?? 0;
  const written = generation.cache_write_tokens ?? 0;
  const lines = [
    { label: 'Input', tokens: (input ?? 0) - cached - written, price: price.input },
    { label: 'Input from the cache', tokens: cached, price: price.cached_input },
    { label: 'Input written to the cache', tokens: written, price: price.cache_write },
    { label: 'Output', tokens: output ?? 0, price: price.output },
  ].filter((line) => !line.label.includes('cache') || line.tokens > 0);
  const priceDigits = digitsOf(lines.map((line) => line.price));
  const costs = lines.map((line) => exactCostText(line.tokens, parsePrice(line.price) ?? 0n));
  const costDigits = digitsOf(costs);
  const counted: Column<CostLine>[] = [
    { label: 'Number', isNumber: true, cell: (line) => count(line.tokens) },
    prices,
    {
      label: 'Cost',
      isNumber: true,
      cell: (line) => html`${decimalsOf(costs[lines.indexOf(line)] ?? '', costDigits)}${unit}`,
    },
  ];
  return html`<section class="sheet">
    ${table('Price', [label, ...(hasCounts ? counted : [prices])], lines)}
    <p class="hint">
      The prices were fixed when the request was
      admitted.${hasCounts && cost !== null && html` The sum of these costs, rounded up to a millionth and at most what was held, is the cost: ${cost} ${currency}.`}
    </p>
  </section>`;
}

function duration(ms: number | null): Shown {
  return ms !== null && html`${count(ms)} <span class="unit">ms</span>`;
}
