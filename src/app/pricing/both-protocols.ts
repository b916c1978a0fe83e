import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createHttp2Server, type Http2Server, type ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { clientOf } from '../../base/values/client-address.ts';
import type { ProxyList } from './proxies.ts';

/** The first bytes of an HTTP/2 connection in cleartext; no HTTP/1.1 method begins so. */
const preface = Buffer.from('PRI');

export interface ConnectionLimits {
  /** Further connections are closed immediately. */
  readonly maxConnections: number;
  /** Of one IPv4 address, or one IPv6 /64, that is not a proxy's. */
  readonly maxConnectionsPerAddress: number;
  /** Simultaneous requests of one HTTP/2 connection. */
  readonly maxStreams: number;
  /** How long a request may take to arrive and to be answered. */
  readonly requestTimeoutMs: number;
  /** How long a connection without a request is kept. */
  readonly idleTimeoutMs: number;
}

/** HTTP/1.1 and HTTP/2 on one port, without TLS. */
export interface BothProtocols {
  readonly server: Server;
  /** Takes no further connections and requests. Resolves once the last request was answered. */
  close(): Promise<void>;
  /** Cuts every connection. */
  destroy(): void;
}

/**
 * Each connection goes to one of two servers by its first bytes: gRPC clients begin with the preface of HTTP/2, Connect and gRPC-Web
 * clients may use either protocol.
 */
export function serveBothProtocols(
  listener: RequestListener,
  limits: ConnectionLimits,
  proxies: ProxyList,
): BothProtocols {
  const sockets = new Set<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  const byAddress = new Map<string, number>();
  const server = createHttp1(listener, limits);
  const http2 = createHttp2(listener, limits, sessions);
  const [http1] = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');

  server.on('connection', (socket: Socket) => {
    // Node has no address of a socket that is closed
    const address = clientOf(socket.remoteAddress ?? '');
    const count = (byAddress.get(address) ?? 0) + 1;
    const isOwn = !proxies.has(socket.remoteAddress ?? '');
    if (isOwn && count > limits.maxConnectionsPerAddress) return void socket.destroy();
    byAddress.set(address, count);
    sockets.add(socket);
    socket.once('close', () => {
      sockets.delete(socket);
      const left = (byAddress.get(address) ?? 1) - 1;
      if (left === 0) byAddress.delete(address);
      else byAddress.set(address, left);
    });
    sniff(socket, limits.requestTimeoutMs, (isHttp2) => {
      if (isHttp2) http2.emit('connection', closedWithClient(socket));
      else http1?.call(server, socket);
    });
  });

  return {
    server,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeIdleConnections();
      for (const session of sessions) session.close();
      await closed;
    },
    destroy: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Sockets of an HTTP/1.1 server stay open when the client closes its side; those of an HTTP/2 server do not. */
function closedWithClient(socket: Socket): Socket {
  socket.allowHalfOpen = false;
  return socket;
}

/** Hands a connection on after its first bytes; closes it if none come. */
function sniff(socket: Socket, timeoutMs: number, handOn: (isHttp2: boolean) => void): void {
  const drop = (): void => void socket.destroy();
  socket.on('error', drop).on('end', drop).setTimeout(timeoutMs, drop);
  const onReadable = (): void => {
    const first = socket.read(preface.length) as Buffer | null;
    // fewer bytes are an HTTP/1.1 request that is sent byte by byte, or an end
    if (first === null) return;
    socket.off('readable', onReadable).off('error', drop).off('end', drop).off('timeout', drop).setTimeout(0);
    socket.unshift(first);
    handOn(first.equals(preface));
  };
  socket.on('readable', onReadable);
}

function createHttp1(listener: RequestListener, { requestTimeoutMs, ...limits }: ConnectionLimits): Server {
  const server = createServer({
    requestTimeout: requestTimeoutMs,
    headersTimeout: requestTimeoutMs,
    keepAliveTimeout: limits.idleTimeoutMs,
    connectionsCheckingInterval: Math.min(1_000, requestTimeoutMs),
    maxHeaderSize: maxHeaderBytes,
  });
  server.maxConnections = limits.maxConnections;
  return server.on('request', listener);
}

const maxHeaderBytes = 8_192;

function createHttp2(
  listener: RequestListener,
  { maxStreams, idleTimeoutMs }: ConnectionLimits,
  sessions: Set<ServerHttp2Session>,
): Http2Server {
  const server = createHttp2Server({
    settings: {
      maxConcurrentStreams: maxStreams,
      maxHeaderListSize: maxHeaderBytes,
      enablePush: false,
    },
    // in MB: of all streams of a connection, with their headers, of which Node takes 64 KB each
    maxSessionMemory: 1,
  });
  server.on('session', (session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
    session.setTimeout(idleTimeoutMs, () => session.destroy());
  });
  // each stream and session has its own error; the connection ends
  server.on('sessionError', () => {});
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node's compatibility layer calls listeners of HTTP/1.1
  return server.on('request', listener as Parameters<Http2Server['on']>[1]);
}
