import type { Random } from '../chaos/random.ts';
import type { SentRequest } from './requests.ts';

/** Just below what the gateway takes of a body, and of a header. */
const bodyChars = 1_000_000;
/** Most forms take 32 KiB, that of an order 128. */
const formChars = [32_000, 130_000] as const;
const headerChars = 50_000;

const times = (piece: string, chars: number): string => piece.repeat(Math.floor(chars / piece.length));
const nested = (open: string, close: string, depth: number): string =>
  open.repeat(depth) + close.repeat(depth);
const listOf = (piece: string, chars: number): string => `[${times(`${piece},`, chars)}0]`;

/** Texts on which careless parsers, patterns and loops take long, each of about this many characters. */
const texts: readonly ((chars: number) => string)[] = [
  (chars) => times('"\\', chars),
  (chars) => times('\\"', chars),
  (chars) => times('e\u0301\u0323', chars / 2),
  (chars) => times(' ', chars),
  (chars) => times('\n', chars),
  (chars) => times('-', chars),
  (chars) => times('a', chars),
  (chars) => times('0', chars),
  (chars) => times('a,', chars),
  (chars) => times('a@', chars),
  (chars) => times('a.', chars),
  (chars) => times('/.', chars),
  (chars) => times('\u202e<', chars / 2),
  (chars) => times('=;', chars),
  (chars) => times(':0', chars),
  (chars) => times('\0', chars),
];

/** JSON of about a megabyte. */
const documents: readonly (() => string)[] = [
  () => nested('[', ']', 90_000),
  () => nested('[', ']', 15_000),
  () => nested('{"a":', '}', 15_000).replace(':}', ':1}'),
  () => '['.repeat(bodyChars),
  () => listOf('[]', bodyChars),
  () => listOf('{}', bodyChars),
  () => listOf('""', bodyChars),
  () => listOf('1e400', bodyChars),
  () => listOf('{"a":"b"}', 130_000),
  () => listOf('[[[[]]]]', bodyChars),
  () => `{${Array.from({ length: 80_000 }, (_, at) => `"k${at}":0`).join(',')}}`,
  () => `{${times('"a":0,', bodyChars)}"a":0}`,
  () => times('"\\', bodyChars),
];

/** What a request says of itself beside its body. */
const headerNames = [
  'accept',
  'accept-language',
  'authorization',
  'cookie',
  'if-none-match',
  'last-event-id',
  'payment-signature',
  'prefer',
  'range',
  'sign-in-with-x',
  'traceparent',
  'x-forwarded-for',
  'x-net-callback-url',
  'x-net-caller',
  'x-net-caller-nonce',
  'x-payment',
  'x-payment-signature',
  'x-request-id',
] as const;

const inputs: readonly (() => string)[] = [
  ...documents,
  () => `{"slow":"${'a'.repeat(26)}!"}`,
  () => `{"tree":${nested('[', '', 12)}0${']'.repeat(12)}}`,
  () => `{"list":[${Array.from({ length: 14_000 }, (_, at) => `{"a":"x${at}"}`).join(',')}]}`,
  () => `{"list":[${times('1000000000000000,', bodyChars)}1]}`,
];

/** Requests that were dear once: the form of an order, a job with a schema, and a completion. */
export function aimed(
  random: Random,
  apiKey: Readonly<Record<string, string>>,
): readonly [name: string, SentRequest] {
  const text = random.pick(texts);
  return random.pick([
    () => {
      const body = random.chance(0.5) ? text(20_000) : random.pick(inputs)().slice(0, 20_000);
      const fields = new URLSearchParams({ body, mode: 'whole', as: random.pick(['json', 'change', '']) });
      const form = random.chance(0.3) ? times('a=&', formChars[1]) : fields.toString().slice(0, formChars[1]);
      const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html' };
      const path = `/jobs/1/${random.between(0, 1)}/order`;
      return [
        'POST /jobs/:service/:index/order',
        { method: 'POST', path, headers, body: Buffer.from(form) },
      ] as const;
    },
    () => {
      const headers = { 'content-type': 'application/json' };
      const body = Buffer.from(random.pick(inputs)());
      const path = '/x402/jobs/1/1';
      return ['POST /x402/jobs/{service_id}/{job_index}', { method: 'POST', path, headers, body }] as const;
    },
    () => {
      const headers = { 'content-type': 'application/json', ...apiKey };
      const messages = [{ role: 'user', content: text(bodyChars / 2) }];
      const body = Buffer.from(
        JSON.stringify({ model: 'vendor/large', messages, stream: random.chance(0.5) }),
      );
      return [
        'POST /v1/chat/completions',
        { method: 'POST', path: '/v1/chat/completions', headers, body },
      ] as const;
    },
  ])();
}

/** Changes one part of a request so that it costs as much as a client can make it cost. */
export function heavier(request: SentRequest, random: Random): SentRequest {
  const { headers, body, method, path } = request;
  if (method === 'GET' || random.chance(0.2)) {
    const text = random
      .pick(texts)(headerChars)
      .replaceAll(/[^\x20-\x7e]/g, '~');
    if (random.chance(0.4)) return { ...request, path: `${path.split('?', 1)[0]}?${heavyQuery(random)}` };
    const name = random.pick(headerNames);
    const value = random.chance(0.3)
      ? Buffer.from(random.pick(documents)()).toString('base64').slice(0, headerChars)
      : text;
    const known = headers[name];
    return {
      ...request,
      headers: { ...headers, [name]: known === undefined ? value : `${String(known)}; ${value}` },
    };
  }
  if (String(headers['content-type']).includes('form'))
    return { ...request, body: Buffer.from(heavyForm(body?.toString() ?? '', random)) };
  if (random.chance(0.5)) return { ...request, body: Buffer.from(random.pick(documents)()) };
  return { ...request, body: Buffer.from(withHeavyMember(body?.toString() ?? '', random)) };
}

function heavyQuery(random: Random): string {
  return random.pick([
    () => times('&', headerChars),
    () => times('a=&', headerChars),
    () => Array.from({ length: 2_000 }, (_, at) => `k${at}=1`).join('&'),
    () => times('%', headerChars),
    () => `cursor=${times('%25', headerChars)}`,
    () => `q=${times('%22%5C', headerChars)}`,
  ])();
}

function heavyForm(sent: string, random: Random): string {
  const fields = new URLSearchParams(sent);
  const chars = random.pick(formChars);
  const many = (): string => `${sent}&${times('a=&', chars - sent.length)}`;
  const names = [...fields.keys()];
  if (names.length === 0 || random.chance(0.3)) return many();
  const name = fields.has('body') && random.chance(0.7) ? 'body' : random.pick(names);
  const value = random.pick(texts)(chars);
  // a character takes one to twelve of them
  for (let length = chars; ; length *= 0.8) {
    fields.set(name, value.slice(0, length));
    const text = fields.toString();
    if (text.length <= chars) return text;
  }
}

/** The same JSON with a heavy value in place of one member, or as a further one. */
function withHeavyMember(sent: string, random: Random): string {
  const value = random.chance(0.5)
    ? JSON.stringify(random.pick(texts)(bodyChars / 6))
    : random.pick(documents)().slice(0, bodyChars);
  let parsed: unknown;
  try {
    parsed = JSON.parse(sent);
  } catch {
    parsed = undefined;
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return value;
  const names = Object.keys(parsed);
  const chosen = names.length > 0 ? random.pick(names) : 'a';
  const others = Object.entries(parsed).filter(([name]) => name !== chosen);
  const members = others.map(([name, member]) => `${JSON.stringify(name)}:${JSON.stringify(member)}`);
  return `{${[...members, `${JSON.stringify(chosen)}:${value}`].join(',')}}`;
}
