import { z } from 'zod';
import { type JobId, jobKey } from '../values/job.ts';
import { patternFault, patternShape } from '../values/route-pattern.ts';
import type { RotatingSecret } from '../values/rotating-secret.ts';
import { urlOfBind } from './hosts.ts';
import type { Path, Report } from './mistakes.ts';
import type { Constants } from './constants.ts';
import type { Reading } from './reading.ts';
import type { RootTable } from './root.ts';
import { checkUnserved, createHindrances } from './runners.ts';
import { rotatingSecret } from './secret-source.ts';
import { ownSecretChars, readRotatingSecret } from './secrets.ts';
import { type ConfigOf, isTable, readTable, readTables, readValue, reloadable, type Table } from './table.ts';
import { answerPriceHeader } from '../values/answer-price.ts';
import { baseUrl, bindAddress, chatUpstream, jobOfUpstream, privateBaseUrl, soldUpstream } from './urls.ts';
import {
  flag,
  jobIndex,
  matching,
  oneLine,
  oneOf,
  priceUsd,
  serviceId,
  text,
  wholeNumber,
  Wrong,
} from './values.ts';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

const pattern = text((raw) => {
  const fault = patternFault(raw);
  return fault === undefined ? raw : new Wrong(fault);
}).meta({ type: 'path, as "/weather/:city" or "/files/*"' });

/** Where paid routes are served. */
export const routeListenerShape = {
  bind_address: bindAddress.describe('Where paid routes, and nothing else, are served'),
  public_url: baseUrl.optional().describe("Clients' address of the routes"),
  free: z
    .unknown()
    .optional()
    .meta({ type: 'table of URLs by path, as { "/health" = "http://127.0.0.1:3000" }' })
    .describe('Paths that are passed on unpaid, and the upstream of each'),
} as const;

export const routeShape = {
  service_id: serviceId.describe('The service of its job; no runner serves it'),
  job_index: jobIndex.describe('Its job'),
  methods: z
    .array(oneOf(methods), 'must be an array of methods')
    .min(1, 'must name at least one method')
    .refine((all) => new Set(all).size === all.length, 'names a method twice')
    .default(['GET'])
    .describe('Methods that are sold'),
  path: pattern.describe('`:name` is one segment, `*` at the end the rest'),
  upstream: soldUpstream.describe(
    'Gets paid requests; their path is appended. `chat`: completions of this gateway, for callers without an account. `job:7/0`: what the runner of that job answers',
  ),
  price: reloadable(priceUsd.optional()).describe(
    'Price in every token with a peg; or the job has one in `[job_prices]`',
  ),
  price_url: privateBaseUrl
    .optional()
    .describe(
      'Asked by POST what each request costs; the price of the route is then the highest that it may say, and what lists show',
    ),
  price_headers: z
    .array(
      matching(/^[a-z0-9-]{1,64}$/, 'must be header names in lower case'),
      'must be an array of header names',
    )
    .max(16, 'has more than 16 names')
    .default([])
    .describe('The headers of a request that its price depends on'),
  description: oneLine(500).optional().describe("Description for discovery, unless the job's policy has one"),
  flow: oneOf(['authorization', 'upfront'])
    .optional()
    .describe(
      '`authorization`: the upstream answers, the payment is settled, the answer is given. `upfront`: the payment is settled first, as streams and long answers need. Default: `authorization` for GET and HEAD, otherwise `upfront`',
    ),
  model_prices: z
    .record(z.string(), priceUsd, 'must be a table of prices by model, as { "vendor/large" = "0.05 USD" }')
    .optional()
    .meta({ type: 'table of dollars by model' })
    .describe(
      'Of upstream `chat`: what a completion of each model costs by `exact`, whatever it uses, in place of `upto`. Other models are not sold then',
    ),
  charge_header: matching(/^[a-z0-9-]{1,64}$/, 'must be the name of a header in lower case')
    .optional()
    .describe(
      'The header of an answer that says what it costs, as `0.013 USD` or wei. The price of the route is then the highest: clients sign for it by `upto`, and what was used is charged',
    ),
  charge_on: z
    .array(
      matching(/^[1-5](?:xx|\d\d)$/, 'must be statuses such as "2xx" or "404"'),
      'must be an array of statuses',
    )
    .default(['2xx', '3xx'])
    .describe('Answers that are charged, with `authorization`'),
  retry_lost: flag
    .default(false)
    .describe(
      'If a gateway died while an upstream was asked, it is asked again also by methods other than GET and HEAD',
    ),
  token: rotatingSecret.describe(
    'Signs the metadata of each paid request. Without it the upstream cannot tell a paid request from another',
  ),
  timeout_ms: wholeNumber(1, 3_600_000)
    .default(30_000)
    .describe('Time limit until an answer begins, and of each pause in it'),
  answer_hours: wholeNumber(1, 720)
    .default(1)
    .describe('How long a stored answer is repeated to its payment'),
} as const;

type RouteTable = Table<typeof routeShape>;

/** A path of an HTTP API that is sold: a job whose calls the gateway serves itself. */
export interface RouteConfig extends ConfigOf<typeof routeShape>, Readonly<Constants['routes']> {
  /** Sign the metadata; undefined where the upstream does not check it. */
  readonly tokens: RotatingSecret | undefined;
}

export interface RoutesConfig {
  readonly bindAddress: { readonly host: string; readonly port: number };
  /** The address that clients use, as far as it is known before the gateway listens. */
  readonly publicUrl: string;
  /** By `jobKey()`. At least one. */
  readonly all: ReadonlyMap<string, RouteConfig>;
  /** The upstreams of paths that are passed on unpaid, by path. */
  readonly free: ReadonlyMap<string, string>;
}

/** Reads `[route_listener]` and `[[routes]]`; undefined where there is none, and after a report. */
export async function readRoutes(root: RootTable, reading: Reading): Promise<RoutesConfig | undefined> {
  const { report } = reading;
  const tables = readTables(routeShape, root.values.routes, ['routes'], report);
  const listener = readListener(root, tables.length > 0, report);
  const all = new Map<string, RouteConfig>();
  for (const table of tables) {
    checkUnserved(table.at, table.values.serviceId, root.values.runners, report);
    const tokens = await readRotatingSecret(table, 'token', { minChars: ownSecretChars }, reading);
    const { whole } = table;
    if (!whole) continue;
    const isChat = whole.upstream === chatUpstream;
    const isJob = jobOfUpstream(whole.upstream) !== undefined;
    if (isChat) checkChat(table.at, whole, root, report);
    else if (isJob) checkJob(table, whole, report);
    else checkUpstream(table.at, whole.upstream, root, listener, report);
    if (whole.priceHeaders.length > 0 && whole.priceUrl === undefined)
      report.mistake([...table.at, 'price_headers'], 'needs price_url');
    if (whole.chargeHeader !== undefined && whole.flow === 'upfront')
      report.mistake(
        [...table.at, 'flow'],
        'must be "authorization", or left out: charge_header is read first',
      );
    if (all.has(jobKey(whole))) report.mistake(table.at, `repeats job ${jobKey(whole)} of another route`);
    if (!isChat && whole.modelPrices !== undefined)
      report.mistake([...table.at, 'model_prices'], 'is for upstream = "chat" alone');
    const terms = isChat ? chatTerms(whole) : isJob ? jobTerms : meteredTerms(whole);
    all.set(jobKey(whole), { ...reading.constants.routes, ...whole, ...terms, tokens });
  }
  checkOverlaps(tables, report);
  const free = readFree(listener?.free, tables, report);
  if (!listener || all.size === 0) return undefined;
  const { bindAddress: bind, publicUrl = urlOfBind(bind) } = listener;
  return { bindAddress: bind, publicUrl, all, free };
}

/** Where the table of a route stands, among others that may have been unreadable. */
export function placeOfRoute(root: RootTable, job: JobId): Path {
  const tables: unknown = root.values.routes;
  const isOfJob = (table: unknown): boolean =>
    isTable(table) &&
    Number(table['service_id']) === job.serviceId &&
    Number(table['job_index']) === job.jobIndex;
  return ['routes', Array.isArray(tables) ? tables.findIndex(isOfJob) : 0];
}

function readListener(root: RootTable, isNeeded: boolean, report: Report) {
  const raw = root.values.routeListener;
  if (raw === undefined) {
    if (isNeeded)
      report.mistake(['route_listener'], 'is missing: its bind_address says where routes are served');
    return undefined;
  }
  const at: Path = ['route_listener'];
  const table = readTable(routeListenerShape, raw, at, report);
  const { bindAddress: own } = table.values;
  const gateway = root.values.bindAddress;
  if (own && gateway && own.port !== 0 && own.port === gateway.port && own.host === gateway.host)
    report.mistake(
      [...at, 'bind_address'],
      'is that of the gateway itself: routes need an address of their own',
    );
  if (!isNeeded) report.mistake(at, 'has no route: add [[routes]]');
  return table.whole;
}

/** What a completion costs is known before it, at most, and after it; or the operator has said it. */
function chatTerms({ modelPrices }: Pick<ConfigOf<typeof routeShape>, 'modelPrices'>) {
  const chargeHeader = modelPrices === undefined ? answerPriceHeader : undefined;
  return { priceUrl: chatUpstream, chargeHeader, flow: 'authorization' } as const;
}

/** What an answer costs, it says itself: it comes before the settlement. */
function meteredTerms({ chargeHeader }: Pick<ConfigOf<typeof routeShape>, 'chargeHeader'>) {
  return chargeHeader === undefined ? {} : ({ flow: 'authorization' } as const);
}

/** A runner's answer is stored before it is settled. To ask again is to wait for the same call. */
const jobTerms = { flow: 'authorization', retryLost: true } as const;

/** A runner gets the body of a request alone. */
function checkJob(
  { at, names }: RouteTable,
  { path, methods: sold, flow, chargeHeader }: ConfigOf<typeof routeShape>,
  report: Report,
): void {
  if (sold.some((method) => method !== 'POST'))
    report.mistake([...at, 'methods'], 'must be ["POST"] for a job: its runner gets the body alone');
  if (/[:*]/.test(path))
    report.mistake([...at, 'path'], 'must have no parameter for a job: its runner gets the body alone');
  if (flow === 'upfront')
    report.mistake([...at, 'flow'], 'must be "authorization", or left out, for a job: its answer is whole');
  if (chargeHeader !== undefined && chargeHeader !== answerPriceHeader)
    report.mistake([...at, 'charge_header'], `must be "${answerPriceHeader}" for a job`);
  if (names('token'))
    report.mistake([...at, 'token'], "would be ignored: calls are signed with the token of the job's runner");
}

/** The routes whose answers runners make, each with the job of its runner. */
export function runnerRoutes(
  routes: RoutesConfig | undefined,
): readonly { readonly route: RouteConfig; readonly job: JobId }[] {
  return [...(routes?.all.values() ?? [])].flatMap((route) => {
    const job = jobOfUpstream(route.upstream);
    return job ? { route, job } : [];
  });
}

/** The jobs that routes sell: only a runner executes them, and only a payment gives credit. */
export function checkRunnerJobs(
  root: RootTable,
  routes: RoutesConfig | undefined,
  topUps: readonly JobId[],
  runners: readonly { readonly services: readonly number[] }[],
  report: Report,
): void {
  const hindranceOf = createHindrances(topUps, runners);
  for (const { route, job } of runnerRoutes(routes)) {
    const at = [...placeOfRoute(root, route), 'upstream'];
    const hindrance = hindranceOf(job);
    if (hindrance === 'sells_credit')
      report.mistake(at, `job ${jobKey(job)} sells credit: no runner executes it`);
    if (hindrance === 'unserved')
      report.mistake(at, `no runner serves service ${job.serviceId}: nothing would answer`);
  }
}

/** Where clients of OpenAI's API ask for completions. */
const completionsPath = '/v1/chat/completions';

function checkChat(
  at: Path,
  { path, methods: sold, price, priceUrl, chargeHeader }: ConfigOf<typeof routeShape>,
  { values }: RootTable,
  report: Report,
): void {
  if (path !== completionsPath || sold.some((method) => method !== 'POST'))
    report.mistake(
      [...at, 'path'],
      `must be "${completionsPath}" with methods = ["POST"] for upstream = "chat"`,
    );
  if (price === undefined)
    report.mistake([...at, 'price'], 'is missing: the most that a completion may cost, such as "2 USD"');
  if (priceUrl !== undefined || chargeHeader !== undefined)
    report.mistake(
      [...at, 'upstream'],
      'is "chat", whose prices are those of [[models]]: leave price_url and charge_header out',
    );
  if (values.features?.includes('chat') !== true)
    report.mistake([...at, 'upstream'], 'is "chat": add "chat" to features');
}

/** Without an account there is no credit: completions are sold for dollars. */
export function checkSoldChat(
  root: RootTable,
  routes: RoutesConfig | undefined,
  chat: { readonly currency: string } | undefined,
  report: Report,
): void {
  const sold = [...(routes?.all.values() ?? [])].find(({ upstream }) => upstream === chatUpstream);
  if (sold && chat && chat.currency !== 'USD')
    report.mistake(
      [...placeOfRoute(root, sold), 'upstream'],
      `is "chat", which is sold in USD, but [chat] currency is ${chat.currency}`,
    );
}

/** The gateway in front of itself would pay itself without end. */
function checkUpstream(
  at: Path,
  upstream: string,
  root: RootTable,
  listener: ReturnType<typeof readListener>,
  report: Report,
): void {
  const { bindAddress: gateway, publicUrl } = root.values;
  const own = [
    ...(gateway ? [urlOfBind(gateway)] : []),
    ...(publicUrl === undefined ? [] : [publicUrl]),
    ...(listener ? [urlOfBind(listener.bindAddress)] : []),
    ...(listener?.publicUrl === undefined ? [] : [listener.publicUrl]),
  ].map((url) => new URL(url));
  const { host, port, hostname } = new URL(upstream);
  const isOwn = own.some(
    (url) => url.host === host || (url.port === port && isAnyHost(url.hostname) && isAnyHost(hostname)),
  );
  if (isOwn) report.mistake([...at, 'upstream'], 'is the gateway itself');
}

function isAnyHost(hostname: string): boolean {
  return ['localhost', '127.0.0.1', '[::1]', '0.0.0.0', '[::]'].includes(hostname);
}

/** Two routes of one method with the same shape of path: which one is meant cannot be told. */
function checkOverlaps(tables: readonly RouteTable[], report: Report): void {
  const seen = new Map<string, string>();
  for (const [index, { at, values }] of tables.entries()) {
    const { path, methods: sold = [] } = values;
    if (path === undefined) continue;
    for (const method of sold) {
      const key = `${method} ${patternShape(path)}`;
      const earlier = seen.get(key);
      if (earlier === undefined) seen.set(key, `routes[${index}]`);
      else report.mistake([...at, 'path'], `is that of ${earlier} as well, for ${method}`);
    }
  }
}

/** What is sold is not given away. */
function readFree(raw: unknown, tables: readonly RouteTable[], report: Report): Map<string, string> {
  const free = new Map<string, string>();
  const at: Path = ['route_listener', 'free'];
  if (raw === undefined) return free;
  if (!isTable(raw)) {
    report.mistake(at, 'must be a table of URLs by path, such as { "/health" = "http://127.0.0.1:3000" }');
    return free;
  }
  const sold = new Map(
    tables.flatMap(({ values: { path } }, index) =>
      path === undefined ? [] : [[patternShape(path), `routes[${index}]`] as const],
    ),
  );
  for (const [path, url] of Object.entries(raw)) {
    const read = readValue(pattern, path, [...at, path], report);
    const upstream = readValue(privateBaseUrl, url, [...at, path], report);
    const route = read && sold.get(patternShape(path));
    if (route !== undefined) report.mistake([...at, path], `is sold by ${route}`);
    if (read && upstream) free.set(path, upstream.value);
  }
  return free;
}

/** The policy of a route that has none in the file: anyone may buy it. */
export function policyOfRoute({ serviceId: service, jobIndex: index, description }: RouteConfig) {
  return {
    service_id: BigInt(service),
    job_index: BigInt(index),
    invocation_mode: 'public_paid',
    ...(description === undefined ? {} : { description }),
  };
}

/** Whether a job is a route. */
export function routeOf(routes: RoutesConfig | undefined, job: JobId): RouteConfig | undefined {
  return routes?.all.get(jobKey(job));
}

/** How a request for a route is charged. */
export function flowOf({ flow }: Pick<RouteConfig, 'flow'>, method: string): 'authorization' | 'upfront' {
  return flow ?? (method === 'GET' || method === 'HEAD' ? 'authorization' : 'upfront');
}

/** Whether an answer with this status is charged, where the upstream answers first. */
export function isCharged({ chargeOn }: Pick<RouteConfig, 'chargeOn'>, status: number): boolean {
  return chargeOn.includes(String(status)) || chargeOn.includes(`${String(status)[0]}xx`);
}
