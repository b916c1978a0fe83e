import { once } from 'node:events';
import { type IncomingHttpHeaders, type Server, createServer } from 'node:http';
import { boundPort } from '../../src/devnet/ports.ts';
import { whenOver } from './shared.ts';

/** A call as it reached the runner, unverified. */
export interface Delivery {
  /** The webhook id: the idempotency key. */
  readonly id: string;
  readonly callId: number;
  readonly attempt: number;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export type Reaction =
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string | Buffer;
    }
  /** Never answers. */
  | 'silence'
  /** Cuts the connection. */
  | 'hang up';

export interface TestRunner {
  readonly url: string;
  /** In order of arrival. */
  readonly deliveries: readonly Delivery[];
  /** The largest number of deliveries in progress at one time. */
  readonly mostAtOnce: () => number;
}

/** A real runner whose behaviour is set call by call. Closed when the test ends. */
export async function startTestRunner(
  behave: (delivery: Delivery) => Reaction | Promise<Reaction>,
  port = 0,
): Promise<TestRunner> {
  const deliveries: Delivery[] = [];
  let running = 0;
  let mostAtOnce = 0;
  const server = createServer((request, response) => {
    const react = async (): Promise<void> => {
      mostAtOnce = Math.max(mostAtOnce, ++running);
      const body = Buffer.concat(await request.toArray());
      const { headers, url = '' } = request;
      const delivery = {
        id: String(headers['webhook-id']),
        callId: Number(headers['x-net-call-id']),
        attempt: Number(headers['x-net-attempt']),
        path: url,
        headers,
        body,
      };
      deliveries.push(delivery);
      const reaction = await behave(delivery);
      running--;
      if (reaction === 'silence') return;
      if (reaction === 'hang up') request.socket.destroy();
      else response.writeHead(reaction.status, reaction.headers).end(reaction.body);
    };
    void react();
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  whenOver(() => close(server));
  return {
    url: `http://127.0.0.1:${boundPort(server)}/calls`,
    deliveries,
    mostAtOnce: () => mostAtOnce,
  };
}

async function close(server: Server): Promise<void> {
  server.close();
  server.closeAllConnections();
  await once(server, 'close');
}
