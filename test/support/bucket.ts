import { createHash, createHmac } from 'node:crypto';
import http from 'node:http';
import { listening } from './listening.ts';

export interface Bucket {
  readonly url: string;
  readonly objects: Map<string, string>;
  /** Answers everything with this status, or with the whole if a range was asked for, while set. */
  fault: number | 'whole' | undefined;
}

export const bucketKeys = { accessKeyId: 'AKIATEST', secretKey: 'a-secret-of-the-bucket' };

/** A small object store that refuses requests without a valid AWS signature, and honours conditional writes. */
export async function startBucket(): Promise<Bucket> {
  const objects = new Map<string, string>();
  const stored = new Map<string, string>();
  const bucket: { url: string; objects: Map<string, string>; fault: Bucket['fault'] } = {
    url: '',
    objects,
    fault: undefined,
  };
  const server = http.createServer((request, response) => {
    void readBody(request).then((body) => {
      const [status, text] = answerOf(bucket, stored, request, body);
      const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
      if (status === 200 && range && bucket.fault !== 'whole') {
        if (Number(range[1]) >= text.length) return response.writeHead(416).end();
        const piece = Buffer.from(text, 'latin1').subarray(Number(range[1]), Number(range[2]) + 1);
        return response.writeHead(206).end(piece);
      }
      return response
        .writeHead(status, status === 200 ? { etag: etagOf(text) } : {})
        .end(Buffer.from(text, 'latin1'));
    });
  });
  const at = await listening(server);
  bucket.url = at;
  return bucket;
}

/** @param bytes as latin1 text */
function answerOf(
  { fault, objects }: Bucket,
  bytes: Map<string, string>,
  request: http.IncomingMessage,
  body: string,
): [number, string] {
  const key = request.url ?? '';
  if (typeof fault === 'number') return [fault, ''];
  if (!isSigned(request, body)) return [403, 'SignatureDoesNotMatch'];
  const stored = bytes.get(key);
  if (request.method === 'DELETE') {
    objects.delete(key);
    return bytes.delete(key) ? [204, ''] : [404, ''];
  }
  if (request.method !== 'PUT') return stored === undefined ? [404, 'NoSuchKey'] : [200, stored];
  const { 'if-match': match, 'if-none-match': noneMatch } = request.headers;
  if (noneMatch === '*' && stored !== undefined) return [412, 'PreconditionFailed'];
  if (match !== undefined && (stored === undefined || match !== etagOf(stored)))
    return [412, 'PreconditionFailed'];
  bytes.set(key, body);
  objects.set(key, Buffer.from(body, 'latin1').toString('utf8'));
  return [200, ''];
}

async function readBody(request: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString('latin1');
}

const etagOf = (text: string): string => `"${createHash('md5').update(text, 'latin1').digest('hex')}"`;
const sha = (text: string): string => createHash('sha256').update(text, 'latin1').digest('hex');
const mac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();

function isSigned(request: http.IncomingMessage, body: string): boolean {
  const match =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)$/.exec(
      request.headers.authorization ?? '',
    );
  const [, id = '', date = '', region = '', names = '', signature] = match ?? [];
  const list = names.split(';');
  const mustBeSigned = ['host', 'range', 'if-match', 'if-none-match', 'content-type', 'x-amz-content-sha256'];
  if (mustBeSigned.some((name) => request.headers[name] !== undefined && !list.includes(name))) return false;
  const signed = list.map((name) => `${name}:${String(request.headers[name])}\n`);
  const canonical = [request.method, request.url, '', signed.join(''), names, sha(body)].join('\n');
  const stamp = String(request.headers['x-amz-date']);
  const text = ['AWS4-HMAC-SHA256', stamp, `${date}/${region}/s3/aws4_request`, sha(canonical)].join('\n');
  const key = mac(mac(mac(mac(`AWS4${bucketKeys.secretKey}`, date), region), 's3'), 'aws4_request');
  const fresh =
    Math.abs(Date.now() - Date.parse(stamp.replace(/^(....)(..)(..)T(..)(..)(..)Z$/, '$1-$2-$3T$4:$5:$6Z'))) <
    60_000;
  return fresh && id === bucketKeys.accessKeyId && mac(key, text).toString('hex') === signature;
}
