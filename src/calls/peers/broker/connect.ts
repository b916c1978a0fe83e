import type { NatsConnection, NodeConnectionOptions } from '@nats-io/transport-node';
import type { JetStreamConfig } from '../../../base/config/jetstream.ts';

export type Connecting = Pick<JetStreamConfig, 'servers' | 'user' | 'password' | 'nkeySeed' | 'ca'>;

const connectTimeoutMs = 5_000;
const reconnectWaitMs = 500;

/** Connects once, and keeps the connection: it is made again whenever it breaks. The client is loaded only where it is used. */
export async function connectBroker(settings: Connecting): Promise<NatsConnection> {
  const { connect, nkeyAuthenticator } = await import('@nats-io/transport-node');
  const { servers, user, password, nkeySeed, ca } = settings;
  const options: NodeConnectionOptions = {
    servers: [...servers],
    name: 'tollbook gateway',
    timeout: connectTimeoutMs,
    maxReconnectAttempts: -1,
    reconnectTimeWait: reconnectWaitMs,
    ignoreAuthErrorAbort: true,
    pingInterval: 10_000,
    maxPingOut: 2,
    ...(user !== undefined && password !== undefined && { user, pass: password }),
    ...(nkeySeed !== undefined && { authenticator: nkeyAuthenticator(new TextEncoder().encode(nkeySeed)) }),
    ...(needsTls(settings) && { tls: ca === undefined ? {} : { ca } }),
  };
  return connect(options);
}

/** A server that the client learns from another one is not to be reached in plain text either. */
function needsTls({ servers, ca }: Connecting): boolean {
  return ca !== undefined || servers.some((server) => /^tls:/i.test(server));
}
