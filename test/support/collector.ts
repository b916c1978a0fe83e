import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

/** A span as a collector gets it by OTLP/HTTP, with its attributes as a record. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: { readonly code: number };
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
}

interface KeyValue {
  readonly key: string;
  readonly value: {
    readonly stringValue?: string;
    readonly boolValue?: boolean;
    readonly intValue?: string;
    readonly doubleValue?: number;
  };
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<ReceivedSpan, 'attributes'> & {
        readonly attributes: readonly KeyValue[];
      })[];
    }[];
  }[];
}

export interface Collector {
  readonly endpoint: string;
  readonly spans: readonly ReceivedSpan[];
  /** The requests as they came: path, headers and body. */
  readonly requests: readonly {
    readonly path: string;
    readonly headers: Readonly<Record<string, unknown>>;
    readonly body: string;
  }[];
  readonly resource: Readonly<Record<string, string | number | boolean>>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** An OTLP/HTTP receiver, which answers with a status or never. */
export async function startCollector(status: number | 'never' = 200): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  const requests: Collector['requests'][number][] = [];
  let resource: Collector['resource'] = {};
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await text(request);
    requests.push({ path: request.url ?? '', headers: request.headers, body });
    if (status === 'never') return;
    if (status === 200)
      for (const one of (JSON.parse(body) as Export).resourceSpans) {
        resource = recordOf(one.resource.attributes);
        for (const scope of one.scopeSpans)
          spans.push(...scope.spans.map((span) => ({ ...span, attributes: recordOf(span.attributes) })));
      }
    response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
  };
  const server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || !address) throw new Error('the collector has no port');
  return {
    endpoint: `http://127.0.0.1:${address.port}`,
    spans,
    requests,
    get resource() {
      return resource;
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close().closeAllConnections();
      await closed;
    },
  };
}

function recordOf(attributes: readonly KeyValue[]): Record<string, string | number | boolean> {
  return Object.fromEntries(
    attributes.map(({ key, value: { stringValue, boolValue, intValue, doubleValue } }) => [
      key,
      stringValue ?? boolValue ?? (intValue === undefined ? (doubleValue ?? '') : Number(intValue)),
    ]),
  );
}
