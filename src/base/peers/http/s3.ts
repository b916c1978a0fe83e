import { createHash, createHmac } from 'node:crypto';
import { createHttpPool, type HttpAnswer } from './http.ts';

export interface S3Options {
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretKey: string;
  /** Over one whole exchange. */
  readonly timeoutMs: number;
  /** At once; 4 by default. */
  readonly connections?: number;
}

/** What a key must hold for a write to take effect. */
export type PutCondition =
  | { readonly kind: 'any' }
  | { readonly kind: 'absent' }
  /** The content with this ETag, as it was read. */
  | { readonly kind: 'unchanged'; readonly etag: string };

/** The part of S3 that checkpoints and results need. Objects are addressed by path, which every implementation supports. */
export interface S3 {
  /** 412 where the condition does not hold. Text is stored as such, bytes without a type. */
  put(key: string, body: string | Buffer, condition: PutCondition): Promise<HttpAnswer>;
  /** @param piece of it alone; by default the whole, which is not read where it is longer than 64 KiB */
  get(key: string, piece?: { readonly from: number; readonly maxBytes: number }): Promise<HttpAnswer>;
  /** Also succeeds for a key that holds nothing. */
  remove(key: string): Promise<HttpAnswer>;
  close(): Promise<void>;
}

const maxResponseBytes = 64 * 1024;
const defaultConnections = 4;

export function createS3(options: S3Options): S3 {
  const { endpoint, bucket, region, accessKeyId, secretKey, timeoutMs } = options;
  const base = new URL(endpoint);
  const pool = createHttpPool(endpoint, { connections: options.connections ?? defaultConnections });
  const send = (
    method: 'GET' | 'PUT' | 'DELETE',
    key: string,
    body: string | Buffer = '',
    {
      conditions = {},
      maxBytes = maxResponseBytes,
    }: { readonly conditions?: Readonly<Record<string, string>>; readonly maxBytes?: number } = {},
  ): Promise<HttpAnswer> => {
    const path = `${base.pathname.replace(/\/$/, '')}/${bucket}/${key.split('/').map(encodeURIComponent).join('/')}`;
    const headers = signV4(
      { method, path, query: '', headers: { host: base.host, ...conditions }, body },
      { accessKeyId, secretKey, region, service: 's3', at: new Date() },
    );
    const contentType = typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/octet-stream';
    const typed = method === 'PUT' ? { ...headers, 'content-type': contentType } : headers;
    const content = method === 'PUT' ? { body: Buffer.from(body) } : {};
    return pool.request({ method, path, headers: typed, ...content, timeoutMs, maxResponseBytes: maxBytes });
  };
  return {
    put: (key, body, condition) => send('PUT', key, body, { conditions: conditionHeaders(condition) }),
    get: (key, piece) =>
      piece
        ? send('GET', key, '', {
            conditions: { range: `bytes=${piece.from}-${piece.from + piece.maxBytes - 1}` },
            maxBytes: piece.maxBytes,
          })
        : send('GET', key),
    remove: (key) => send('DELETE', key),
    close: () => pool.close(),
  };
}

function conditionHeaders(condition: PutCondition): Record<string, string> {
  switch (condition.kind) {
    case 'any':
      return {};
    case 'absent':
      return { 'if-none-match': '*' };
    case 'unchanged':
      return { 'if-match': condition.etag };
  }
}

export interface UnsignedRequest {
  readonly method: string;
  /** Percent-encoded. */
  readonly path: string;
  /** Sorted and percent-encoded. */
  readonly query: string;
  /** Lower-case names; `host` is among them. All of them are signed. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
}

/** AWS Signature Version 4: the request's headers with its authorization. */
export function signV4(
  { method, path, query, headers, body }: UnsignedRequest,
  key: {
    readonly accessKeyId: string;
    readonly secretKey: string;
    readonly region: string;
    readonly service: string;
    readonly at: Date;
  },
): Record<string, string> {
  const stamp = key.at.toISOString().replaceAll(/[-:]|\.\d{3}/g, '');
  const date = stamp.slice(0, 8);
  const bodyHash = sha256Hex(body);
  const all: Record<string, string> = { ...headers, 'x-amz-content-sha256': bodyHash, 'x-amz-date': stamp };
  const names = Object.keys(all).toSorted();
  const canonical = [
    method,
    path,
    query,
    ...names.map((name) => `${name}:${all[name]?.trim() ?? ''}`),
    '',
    names.join(';'),
    bodyHash,
  ].join('\n');
  const scope = `${date}/${key.region}/${key.service}/aws4_request`;
  const text = `AWS4-HMAC-SHA256\n${stamp}\n${scope}\n${sha256Hex(canonical)}`;
  const signingKey = [date, key.region, key.service, 'aws4_request'].reduce<Buffer>(
    (last, part) => createHmac('sha256', last).update(part).digest(),
    Buffer.from(`AWS4${key.secretKey}`, 'utf8'),
  );
  const signature = createHmac('sha256', signingKey).update(text).digest('hex');
  const credential = `Credential=${key.accessKeyId}/${scope}`;
  return {
    ...all,
    authorization: `AWS4-HMAC-SHA256 ${credential},SignedHeaders=${names.join(';')},Signature=${signature}`,
  };
}

function sha256Hex(text: string | Buffer): string {
  return createHash('sha256').update(text).digest('hex');
}
