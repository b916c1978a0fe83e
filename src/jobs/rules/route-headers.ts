/** A header name, in lower case, and its value; a name may come several times. */
export type Header = readonly [name: string, value: string];

/** Headers as Node and undici read them: names in lower case. */
export type HeaderFields = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Of one connection alone (RFC 9110, section 7.6.1), besides those that `Connection` names. */
const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

/** What clients pay with, or what the gateway alone may say to an upstream. */
const notPassedOn =
  /^(?:payment-signature|x-payment|x-x402-.*|x-net-.*|webhook-.*|x-forwarded-.*|forwarded|x-real-ip)$/;

/** What the gateway says itself, or what would make a client pay twice. */
const notAnswered = /^(?:payment-required|payment-response|x-payment-response|x-request-id)$/;

/** What shared caches obey before `Cache-Control` (RFC 9213, and those of vendors). */
const sharedCaching = /^(?:(?:[a-z0-9-]+-)?cdn-cache-control|surrogate-control|x-accel-expires)$/;

/** Cookies of the gateway's own pages and console. */
const ownCookie = /^(?:__(?:Host|Secure)-)?tollbook/i;

export interface ClientAddress {
  readonly address: string;
  readonly protocol: string;
  readonly host: string;
}

/**
 * The headers of a request as its upstream gets them, without those that the gateway sets: `Host`, `Content-Length`, the metadata of a paid
 * call and its signature.
 */
export function upstreamHeaders(fields: HeaderFields, client: ClientAddress): Header[] {
  const dropped = connectionNames(fields);
  const passed = entriesOf(fields).flatMap(([name, value]): Header[] => {
    // some upstreams read both spellings as one
    if (hopByHop.has(name) || dropped.has(name) || notPassedOn.test(name.replaceAll('_', '-'))) return [];
    if (name === 'host' || name === 'content-length' || name === 'expect') return [];
    if (name !== 'cookie') return [[name, value]];
    const cookies = withoutOwnCookies(value);
    return cookies === '' ? [] : [['cookie', cookies]];
  });
  return [
    ...passed,
    ['x-forwarded-for', client.address],
    ['x-forwarded-proto', client.protocol],
    ['x-forwarded-host', client.host],
  ];
}

/** The headers of an upstream's answer as the client gets them. */
export function answerHeaders(fields: HeaderFields): Header[] {
  const dropped = connectionNames(fields);
  return entriesOf(fields).filter(([name, value]) => {
    if (hopByHop.has(name) || dropped.has(name) || notAnswered.test(name) || sharedCaching.test(name))
      return false;
    return name !== 'set-cookie' || !ownCookie.test(value.trim());
  });
}

/** What says how an answer is read, kept or followed is not taken from behind its body (RFC 9110, section 6.5.1). */
const neverTrailing =
  /^(?:content-(?:length|type|encoding|range|location)|set-cookie.*|(?:.*-)?authenticat.*|cache-control|expires|age|pragma|vary|date|location|link|retry-after|host)$/;

/** The trailers of an upstream's answer as the client gets them: those that can be sent, and that are no head of an answer. */
export function answerTrailers(fields: HeaderFields): Header[] {
  return answerHeaders(fields).filter(
    ([name, value]) => !neverTrailing.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value),
  );
}

/** What was paid for is not for others: a shared cache must not keep it. `private` of single fields is not enough. */
export function privateCacheControl(headers: readonly Header[]): string {
  const values = headers.flatMap(([name, value]) => (name === 'cache-control' ? value.split(',') : []));
  const directives = values.map((directive) => directive.trim());
  const kept = directives.filter((one) => one !== '' && !/^(?:public|s-maxage\s*=.*)$/i.test(one));
  return kept.some((one) => /^(?:private|no-store)$/i.test(one))
    ? kept.join(', ')
    : ['private', ...kept].join(', ');
}

/** The content type of an answer as it is stored: a longer one is cut. */
export function storedContentType(headers: readonly Header[]): string | undefined {
  return headers.find(([name]) => name === 'content-type')?.[1].slice(0, 200);
}

function entriesOf(fields: HeaderFields): Header[] {
  return Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((one): Header => [name.toLowerCase(), one]),
  );
}

function connectionNames({ connection }: HeaderFields): ReadonlySet<string> {
  const names = [connection ?? []].flat().join(',').split(',');
  return new Set(names.map((name) => name.trim().toLowerCase()));
}

function withoutOwnCookies(cookies: string): string {
  const kept = cookies.split(';').filter((cookie) => !ownCookie.test(cookie.trim()));
  return kept.join(';').trim();
}

/** Status and headers of an answer. */
interface Head {
  readonly status: number;
  readonly headers: readonly Header[];
}

/** As it is stored. */
export function writeHead({ status, headers }: Head): string {
  return JSON.stringify({ status, headers });
}

/** What was written before, and is the same by its hash. */
export function readHead(text: string): Head {
  return JSON.parse(text) as Head;
}
