import type { Random } from '../chaos/random.ts';
import { hostileValue } from './values.ts';

/** JSON whose parts can be set by path. */
export type Json = Readonly<Record<string, unknown>>;

/** A paid request before it is sent: the payment, and what is around it. */
export interface PaidDraft {
  payment: Json;
  x402Version: 1 | 2;
  /** How the payment becomes the text of its header. */
  encode: (payment: Json) => string;
  path: string;
  headers: Record<string, string | readonly string[]>;
  body: Buffer;
}

type Change = (draft: PaidDraft, random: Random) => void;

const base64 = (text: string): string => Buffer.from(text).toString('base64');
export const encodePayment = (payment: Json): string => base64(JSON.stringify(payment));

/** Changes one part of a correctly paid request. Its authorization stays the one that was signed, or is no longer valid. */
export function changeOnePart(draft: PaidDraft, random: Random): void {
  random.pick(random.pick([ofHeader, ofFields, ofFields, ofRequest]))(draft, random);
}

const recode =
  (change: (encoded: string, random: Random) => string): Change =>
  (draft, random) => {
    const { encode } = draft;
    draft.encode = (payment) => change(encode(payment), random);
  };
const respell =
  (change: (json: string) => string): Change =>
  (draft) => {
    draft.encode = (payment) => base64(change(JSON.stringify(payment)));
  };

const ofHeader: readonly Change[] = [
  recode((text) => text.replaceAll('+', '-').replaceAll('/', '_')),
  recode((text) => text.replaceAll('=', '')),
  recode((text) => `${text}=`),
  recode((text) => base64(text)),
  recode((text, random) => text.slice(0, random.between(0, text.length))),
  recode((text) => `${text}, ${text}`),
  recode((text) => ` \t${text} `),
  recode((text) => text.replace(/^(.{20})/, '$1 ')),
  recode((text) => `Bearer ${text}`),
  recode((text, random) => {
    const at = random.between(0, text.length - 1);
    return text.slice(0, at) + random.pick(['A', '%', '~', '=']) + text.slice(at + 1);
  }),
  respell((json) => `\ufeff${json}`),
  respell((json) => `${json}\0`),
  respell((json) => ` ${json}\n`),
  respell((json) => `[${json}]`),
  respell((json) => JSON.stringify(json)),
  respell((json) => json.replace('{', '{"__proto__":{"x402Version":1},')),
  respell((json) => json.replaceAll(/[a-z]/g, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`)),
  respell((json) => json.replace('{', `{"padding":"${'x'.repeat(8_000)}",`)),
  (draft) => {
    draft.x402Version = draft.x402Version === 1 ? 2 : 1;
  },
];

/** Every path to a value that is not an object. */
function leavesOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([key, inner]) => leavesOf(inner, [...path, key]));
}

function changedAt(
  value: unknown,
  [key, ...rest]: readonly string[],
  change: (old: unknown) => unknown,
): unknown {
  if (key === undefined) return change(value);
  const object = value as Json;
  return { ...object, [key]: changedAt(object[key], rest, change) };
}

const atLeaf =
  (change: (old: unknown, random: Random) => unknown): Change =>
  (draft, random) => {
    const path = random.pick(leavesOf(draft.payment));
    draft.payment = changedAt(draft.payment, path, (old) => change(old, random)) as Json;
  };

/** Writes a key twice, with the right value first or last. */
const twice: Change = (draft, random) => {
  const path = random.pick(leavesOf(draft.payment));
  let right = '';
  const marked = changedAt(draft.payment, path, (old) => {
    right = JSON.stringify(old);
    return '@twice@';
  }) as Json;
  const wrong = JSON.stringify(hostileValue(random)) ?? 'null';
  const key = JSON.stringify(path.at(-1));
  const [first, second] = random.shuffled([right, wrong]);
  draft.payment = marked;
  draft.encode = (payment) =>
    base64(JSON.stringify(payment).replace(`${key}:"@twice@"`, () => `${key}:${first},${key}:${second}`));
};

const changedNumber = (old: unknown, by: bigint): unknown =>
  /^\d{1,78}$/.test(String(old)) ? String(BigInt(String(old)) + by) : old;

const ofFields: readonly Change[] = [
  atLeaf(() => undefined),
  atLeaf((_, random) => hostileValue(random)),
  atLeaf((old) => String(old).toUpperCase()),
  atLeaf((old) => String(old).replace('0x', '0X')),
  atLeaf((old) => String(old).replace('0x', '')),
  atLeaf((old) => `0${String(old)}`),
  atLeaf((old) => ` ${String(old)}`),
  atLeaf((old) => Number(old)),
  atLeaf((old) => String(old)),
  atLeaf((old) => [old]),
  atLeaf((old) => ({ value: old })),
  atLeaf((old) => `${String(old)}00`),
  atLeaf((old) => String(old).slice(0, -2)),
  atLeaf((old) => changedNumber(old, 1n)),
  atLeaf((old) => changedNumber(old, -1n)),
  atLeaf((old) => (/^\d+$/.test(String(old)) ? `0x${BigInt(String(old)).toString(16)}` : old)),
  atLeaf((old, random) => (String(old).startsWith('0x') ? random.hex32().slice(0, String(old).length) : old)),
  twice,
  twice,
  (draft, random) => {
    draft.payment = {
      ...draft.payment,
      [random.pick(['extra', 'resource', 'extensions'])]: hostileValue(random),
    };
  },
  (draft, random) => {
    const id = random.pick(['an-identifier-of-16', random.hex32(), 'short', 'x'.repeat(200)]);
    draft.payment = { ...draft.payment, extensions: { 'payment-identifier': { info: { id } } } };
  },
  // the other form of an s, and v as a parity
  (draft) => {
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
    draft.payment = changedAt(draft.payment, ['payload', 'signature'], (old) => {
      const text = String(old);
      const s = (order - BigInt(`0x${text.slice(66, 130)}`)).toString(16).padStart(64, '0');
      return `${text.slice(0, 66)}${s}${text.endsWith('1b') ? '1c' : '1b'}`;
    }) as Json;
  },
  (draft) => {
    draft.payment = changedAt(draft.payment, ['payload', 'signature'], (old) =>
      String(old).replace(/1b$/, '00').replace(/1c$/, '01'),
    ) as Json;
  },
];

const withHeader = (name: string, ...values: string[]): Change => {
  return (draft, random) => {
    draft.headers[name] = random.pick(values);
  };
};

const ofRequest: readonly Change[] = [
  (draft, random) => {
    draft.body = Buffer.concat([draft.body, Buffer.from([random.between(0, 255)])]);
  },
  (draft) => {
    draft.body = Buffer.alloc(0);
  },
  (draft) => {
    draft.body = Buffer.alloc(300_000, 'x');
  },
  (draft, random) => {
    draft.path = random.pick([
      `${draft.path}/`,
      `${draft.path}?a=b`,
      draft.path.replace('/1/', '/01/'),
      draft.path.replace('/1/', '/%31/'),
      '/x402/jobs/1/1',
      '/x402/jobs/1/2',
      `${draft.path}/auth-dry-run`,
    ]);
  },
  withHeader(
    'content-type',
    'application/json',
    'text/plain; charset=x',
    'x'.repeat(300),
    'multipart/form-data',
  ),
  withHeader('content-encoding', 'gzip', 'identity', 'x'),
  withHeader('x-net-caller', '0x70997970C51812dc3A010C7d01b50e0d17dc79C8', '0x1', ''),
  withHeader('x-net-caller-sig', '0x', `0x${'1b'.repeat(65)}`),
  withHeader('idempotency-key', 'one', 'x'.repeat(1_000)),
  withHeader('authorization', 'Bearer x', 'Basic eDp4'),
  withHeader('x-forwarded-for', '127.0.0.1', 'x', '1.1.1.1, 2.2.2.2'),
  withHeader('x-payment', 'x', '', encodePayment({ x402Version: 1 })),
  withHeader('payment-signature', 'x', '', encodePayment({ x402Version: 2 })),
  withHeader('x-http-method-override', 'GET'),
];
