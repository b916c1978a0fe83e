import net, { isIP } from 'node:net';
import tls from 'node:tls';
import { hostOf } from '../../config/hosts.ts';

/** Whether a connection to the host of a URL can be made, for https with a certificate that is accepted. */
export type Reach =
  | {
      readonly kind: 'reached';
      /** When its certificate ends; undefined without TLS. */
      readonly certificateEnds: Date | undefined;
    }
  /** Nothing accepts a connection. The code is Node's, or `timeout`. */
  | { readonly kind: 'unreachable'; readonly code: string }
  /** It is not encrypted as this program requires: mostly a certificate of an unknown authority, of another host, or that has ended. */
  | { readonly kind: 'insecure'; readonly code: string };

const defaultPorts: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

/** Connects once, sends nothing, and closes. Never rejects. */
export function reach(url: string, timeoutMs: number): Promise<Reach> {
  const parsed = new URL(url);
  const host = hostOf(parsed);
  const to = { host, port: Number(parsed.port) || (defaultPorts[parsed.protocol] ?? 0) };
  const isEncrypted = parsed.protocol === 'https:';
  return new Promise((resolve) => {
    let isConnected = false;
    const socket = isEncrypted
      ? // an address has no name to ask for
        tls.connect({ ...to, ...(isIP(host) === 0 && { servername: host }), ALPNProtocols: ['http/1.1'] })
      : net.connect(to);
    const end = (reached: Reach): void => {
      socket.destroy();
      resolve(reached);
    };
    const fail = (code: string): void =>
      end({ kind: isConnected && code !== 'timeout' ? 'insecure' : 'unreachable', code });
    socket.setTimeout(timeoutMs, () => fail('timeout'));
    socket.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? 'unknown'));
    socket.once('connect', () => {
      isConnected = true;
      if (!isEncrypted) end({ kind: 'reached', certificateEnds: undefined });
    });
    socket.once('secureConnect', () => end({ kind: 'reached', certificateEnds: endOf(socket) }));
  });
}

function endOf(socket: net.Socket): Date | undefined {
  if (!(socket instanceof tls.TLSSocket)) return undefined;
  const ends = new Date(socket.getPeerCertificate().valid_to);
  return Number.isNaN(ends.getTime()) ? undefined : ends;
}
