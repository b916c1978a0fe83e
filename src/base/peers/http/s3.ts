import { createHash } from 'node:crypto';
import { AwsV4Signer } from 'aws4fetch';
import { createHttpPool, type HttpAnswer } from './http.ts';

export interface S3Options {
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretKey: string;
  /** Over one whole exchange. */
  readonly timeoutMs: number;
  /** Simultaneous requests; 4 by default. */
  readonly connections?: number;
}

/** What a key must hold for a write to take effect. */
export type PutCondition =
  | { readonly kind: 'any' }
  | { readonly kind: 'absent' }
  /** The content that was read with this ETag. */
  | { readonly kind: 'unchanged'; readonly etag: string };

/** The part of S3 that checkpoints and results need. Objects are addressed by path, which every implementation supports. */
export interface S3 {
  /** 412 if the condition does not hold. Text is stored as such, bytes without a type. */
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
  const folder = `${endpoint.replace(/\/$/, '')}/${bucket}`;
  const pool = createHttpPool(endpoint, { connections: options.connections ?? defaultConnections });
  const send = async (
    method: 'GET' | 'PUT' | 'DELETE',
    key: string,
    headers: Readonly<Record<string, string>>,
    { body = Buffer.alloc(0), maxBytes = maxResponseBytes } = {},
  ): Promise<HttpAnswer> => {
    const signer = new AwsV4Signer({
      method,
      url: `${folder}/${key.split('/').map(encodeURIComponent).join('/')}`,
      // by default neither the body nor a range is signed
      headers: { ...headers, 'x-amz-content-sha256': createHash('sha256').update(body).digest('hex') },
      allHeaders: true,
      accessKeyId,
      secretAccessKey: secretKey,
      region,
      service: 's3',
    });
    const signed = await signer.sign();
    const request = { method, path: signed.url.pathname, headers: Object.fromEntries(signed.headers) };
    const content = method === 'PUT' ? { body } : {};
    return pool.request({ ...request, ...content, timeoutMs, maxResponseBytes: maxBytes });
  };
  return {
    put: (key, body, condition) => {
      const type = typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/octet-stream';
      const headers = { ...conditionHeaders(condition), 'content-type': type };
      return send('PUT', key, headers, { body: Buffer.from(body) });
    },
    get: (key, piece) =>
      piece
        ? send('GET', key, { range: `bytes=${piece.from}-${piece.from + piece.maxBytes - 1}` }, piece)
        : send('GET', key, {}),
    remove: (key) => send('DELETE', key, {}),
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
